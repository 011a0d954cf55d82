package python_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/python"
	"github.com/ropewalk/ropewalk/internal/testing/pythontest"
)

// A program that is attached runs as one of -c does, and its file is closed then.
func TestAttachedProgramsRun(t *testing.T) {
	cmd := exec.Command(pythontest.Need(t, "PYTHON"), "-c")
	program := "# é\n" + strings.Repeat("#\n", 1<<17) +
		"import os, sys\nopen_ = [d for d in '34' if os.path.exists('/proc/self/fd/' + d)]\n" +
		"print(__name__, sys.argv, sys.path[0], open_)\nraise ValueError"
	run, file, err := python.Attach(cmd, "<program>", program)
	require.NoError(t, err)
	cmd.Args = append(cmd.Args, run, "one")
	out, err := cmd.CombinedOutput()
	require.NoError(t, file.Close())
	require.Error(t, err)
	require.Contains(t, string(out), "__main__ ['-c', 'one']  []")
	require.Contains(t, string(out), `File "<program>", line 131077`)
}
