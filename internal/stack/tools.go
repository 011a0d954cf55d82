package stack

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// ErrNoTool says that a server's program is not installed; the message says what to do.
var ErrNoTool = errors.New("program not found")

// FindTool returns the path of a program: from PATH, else from a .tools folder of the working
// folder or one above it, else from one beside the executable or in the folder above that.
func FindTool(name string) (string, error) {
	if p, err := exec.LookPath(name); err == nil {
		return filepath.Abs(p)
	}
	var dirs []string
	if wd, err := os.Getwd(); err == nil {
		for d := wd; ; d = filepath.Dir(d) {
			dirs = append(dirs, d)
			if d == filepath.Dir(d) {
				break
			}
		}
	}
	if self, err := os.Executable(); err == nil {
		dirs = append(dirs, filepath.Dir(self), filepath.Dir(filepath.Dir(self)))
	}
	for _, d := range dirs {
		p := filepath.Join(d, ".tools", name)
		if fi, err := os.Stat(p); err == nil && fi.Mode().IsRegular() && fi.Mode().Perm()&0o111 != 0 {
			return p, nil
		}
	}
	return "", fmt.Errorf("%w: %s is neither on PATH nor in .tools: %s", ErrNoTool, name, toolAdvice(name))
}

func toolAdvice(name string) string {
	if _, err := exec.LookPath("go"); err != nil {
		return "install " + name + ", or install Go and run `make tools` in the source tree"
	}
	return "run `make tools` in the source tree (builds it once, some minutes), or install " + name
}
