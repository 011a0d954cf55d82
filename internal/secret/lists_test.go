package secret

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestVariablesAndHeaders(t *testing.T) {
	t.Setenv("SECRET_TEST_TOKEN", "long enough")
	s := &Values{}
	vars, err := s.Variables([]string{"SECRET_TEST_TOKEN", "SECRET_TEST_MISSING", "A=b=${env:SECRET_TEST_TOKEN}"})
	require.NoError(t, err)
	require.Equal(t, []string{"SECRET_TEST_TOKEN=long enough", "A=b=long enough"}, vars)
	headers, err := s.Headers([]string{"Authorization=Bearer ${env:SECRET_TEST_TOKEN}"})
	require.NoError(t, err)
	require.Equal(t, map[string]string{"Authorization": "Bearer long enough"}, headers)
	_, err = s.Headers([]string{"A=${env:SECRET_TEST_MISSING}"})
	require.ErrorContains(t, err, "headers: resolve")
}

func TestVariablesAreConcealed(t *testing.T) {
	t.Setenv("SECRET_TEST_TOKEN", "long enough")
	t.Setenv("SECRET_TEST_KEY", "first line\nx\nthird line")
	t.Setenv("HOME", "/home/somebody")
	s := &Values{}
	_, err := s.Variables([]string{"SECRET_TEST_TOKEN", "SECRET_TEST_KEY", "HOME"})
	require.NoError(t, err)
	require.Equal(t, "a [secret] b", s.Conceal("a long enough b"))
	require.Equal(t, "[secret]", s.Conceal("first line\nx\nthird line"))
	require.Equal(t, "error in [secret]: x", s.Conceal("error in third line: x"))
	require.Equal(t, "/home/somebody/main.py", s.Conceal("/home/somebody/main.py"))
}
