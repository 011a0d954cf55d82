package secret

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestReferencesAreResolvedWhereTheyAreUsed(t *testing.T) {
	t.Setenv("ROPEWALK_TEST_KEY", `a"key/of worth`)
	file := filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(file, []byte("from-a-file\n"), 0o600))
	var s Values
	got, err := s.Resolve("key", "Bearer ${env:ROPEWALK_TEST_KEY} and ${file:"+file+"}")
	require.NoError(t, err)
	require.Equal(t, `Bearer a"key/of worth and from-a-file`, got)
	require.Equal(t, `x [secret] [secret] [secret] [secret] y`,
		s.Conceal(`x a"key/of worth a\"key/of worth a%22key%2Fof+worth from-a-file y`))
	var none Values
	require.Equal(t, "plain", none.Conceal("plain"))
}

func TestErrorsNameTheReferenceAlone(t *testing.T) {
	t.Setenv("ROPEWALK_TEST_SHORT", "abc")
	t.Setenv("ROPEWALK_TEST_LINES", "one line\nand another")
	for ref, want := range map[string]string{
		"${env:ROPEWALK_TEST_SHORT}":  "must hold one line of 6",
		"${env:ROPEWALK_TEST_LINES}":  "must hold one line of 6",
		"${env:ROPEWALK_TEST_ABSENT}": "the worker has no such variable",
		"${file:/nonexistent/key}":    "the worker cannot open the file",
	} {
		_, err := new(Values).Resolve("judge.key", ref)
		require.ErrorContains(t, err, want, ref)
		require.ErrorContains(t, err, "judge.key: ", ref)
		require.False(t, strings.Contains(err.Error(), "one line\nand"), ref)
	}
}

func TestCredentialsOfAddresses(t *testing.T) {
	for _, address := range []string{"https://host/a:b@c", "https://me:${env:KEY}@host/x", "https://${file:/a/b}@host",
		"${env:URL}", "no address", ""} {
		require.Empty(t, Literal(address), address)
	}
	for _, address := range []string{"https://me:hunter2@host", "wss://token@host:1/x", "http://me:x${env:KEY}@host"} {
		fault := Literal(address)
		require.Contains(t, fault, "must hold no password", address)
		require.NotContains(t, fault, "hunter2")
	}
}

func TestFormOfReferences(t *testing.T) {
	require.Empty(t, Malformed("https://${env:HOST}/v1"))
	require.NotEmpty(t, Malformed("${vault:x}"))
	require.Equal(t, "https://x/v1", Masked("https://${env:HOST}/v1"))
	require.True(t, Whole("${env:KEY}"))
	for _, text := range []string{"", "sk-123", "Bearer ${env:KEY}", "${env:A}${env:B}"} {
		require.False(t, Whole(text), text)
	}
}
