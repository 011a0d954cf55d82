package sandbox

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/sandbox/zygote"
)

func TestLimitRunsCalls(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil && os.Getenv("ROPEWALK_REQUIRE_PYTHON") == "" {
		t.Skip(err)
	}
	require.NoError(t, err)
	t.Chdir(filepath.Join("..", "..", ".."))
	start := zygote.Start{Python: python, Flags: []string{"-S", "-s", "-B"}, Environment: os.Environ()}
	settings := limitSettings{Zygotes: 2, Path: []string{}, WarmUp: "import fractions; loaded = 3",
		Program: "import fractions; print(fractions.Fraction(1, 2))", Output: "1/2\n"}
	s, err := limitSide(t.Context(), start, settings)
	require.NoError(t, err)
	rate, err := s.measure(t.Context(), 50*time.Millisecond)
	require.NoError(t, err)
	require.Positive(t, rate)
	require.NoError(t, s.close())

	settings.WarmUp = "import nowhere_to_be_found"
	_, err = limitSide(t.Context(), start, settings)
	require.ErrorContains(t, err, "nowhere_to_be_found")

	settings.WarmUp, settings.Output = "", "2\n"
	s, err = limitSide(t.Context(), start, settings)
	require.NoError(t, err)
	_, err = s.measure(t.Context(), 50*time.Millisecond)
	require.ErrorContains(t, err, "printed b'1/2")
}
