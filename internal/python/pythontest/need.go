// Package pythontest finds the Python that tests compare with, and says what becomes of a test where
// there is none.
package pythontest

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/python"
)

// Need returns an interpreter that has all modules. Where there is none the test is skipped, or
// fails if ROPEWALK_REQUIRE_<what> is set.
func Need(t testing.TB, what string, modules ...string) string {
	t.Helper()
	name, err := python.Find(t.Context(), modules...)
	if err != nil {
		if variable := "ROPEWALK_REQUIRE_" + what; os.Getenv(variable) != "" {
			t.Fatalf("%s is set, and %v", variable, err)
		}
		t.Skip(err)
	}
	return name
}

// Start runs a script that answers its standard input until that ends, at the end of the test; it must then end well.
func Start(t testing.TB, interpreter, script string) (in io.Writer, out *bufio.Reader) {
	t.Helper()
	cmd := exec.Command(interpreter, script)
	cmd.Stderr = os.Stderr
	to, err := cmd.StdinPipe()
	require.NoError(t, err)
	from, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		to.Close()
		require.NoError(t, cmd.Wait())
	})
	return to, bufio.NewReader(from)
}
