package engine

import (
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/python/pythontest"
)

// TestPython runs the engine's own tests, all in one Python process.
func TestPython(t *testing.T) {
	cmd := exec.Command(pythontest.Need(t, "TORCH", "torch", "transformers", "safetensors"), "-I", "tests/run.py")
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	require.NoError(t, cmd.Run())
}
