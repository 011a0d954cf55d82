package engine

import (
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/testing/pythontest"
)

// modules are the engine's own tests that need no second process; the long form runs them all.
var modules = []string{"test_calls", "test_folders", "test_generate", "test_head", "test_kept", "test_transformers",
	"test_wire"}

// TestPython runs the engine's own tests, all in one Python process.
func TestPython(t *testing.T) {
	cmd := exec.Command(pythontest.Need(t, "TORCH", "torch", "transformers", "safetensors"), "-I", "tests/run.py")
	if !pythontest.Long() {
		cmd.Args = append(cmd.Args, modules...)
	}
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	require.NoError(t, cmd.Run())
}
