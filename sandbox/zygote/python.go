package zygote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/ropewalk/ropewalk/sandbox"
)

// whereabouts prints the real interpreter behind a shim or a virtual environment, or nothing
// if it is too old.
const whereabouts = `import sys; print(getattr(sys, "_base_executable", "") or sys.executable if sys.version_info >= (3, 8) else "")`

// usualPlaces are tried after the python3 on PATH: that one may lie in a home folder which the
// sandbox's user cannot enter.
var usualPlaces = []string{"/usr/bin/python3", "/usr/local/bin/python3"}

// findPythons returns real interpreters in order of preference. A named one stands alone.
func findPythons(ctx context.Context, named string) ([]string, error) {
	places := append([]string{"python3"}, usualPlaces...)
	if named != "" {
		places = []string{named}
	}
	var found []string
	var faults []error
	for _, place := range places {
		python, err := resolvePython(ctx, place)
		if err != nil {
			faults = append(faults, err)
		} else if !slices.Contains(found, python) {
			found = append(found, python)
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("%w: install Python 3.8 or later (Debian: apt-get install python3) or name one: %w",
			sandbox.ErrNoPython, errors.Join(faults...))
	}
	return found, nil
}

func resolvePython(ctx context.Context, place string) (string, error) {
	path, err := exec.LookPath(place)
	if err != nil {
		return "", fmt.Errorf("find %s: %w", place, err)
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, path, "-I", "-S", "-c", whereabouts).Output()
	if err != nil {
		return "", fmt.Errorf("ask %s for its real path: %w", path, err)
	}
	real := string(bytes.TrimSpace(out))
	if real == "" {
		return "", fmt.Errorf("use %s: it is older than Python 3.8", path)
	}
	if real, err = filepath.EvalSymlinks(real); err != nil {
		return "", fmt.Errorf("resolve interpreter behind %s: %w", path, err)
	}
	return real, nil
}
