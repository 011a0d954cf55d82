package bench

import (
	"os"
	"path/filepath"
)

// SandboxPython is the interpreter that the sandbox is measured with: the one that ROPEWALK_SANDBOX_PYTHON names, else
// the one that tools/sandbox-python.sh makes, else "", which leaves the choice to the sandbox.
func SandboxPython() string {
	if named := os.Getenv("ROPEWALK_SANDBOX_PYTHON"); named != "" {
		return named
	}
	made, err := filepath.Abs(filepath.Join(".tools", "sandbox-python", "bin", "python"))
	if err != nil {
		return ""
	}
	if _, err := os.Stat(made); err != nil {
		return ""
	}
	return made
}
