package zygote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ropewalk/ropewalk/sandbox"
)

// describePython prints which interpreter is behind a shim or a virtual environment, where its packages are, and which
// of the modules named in its arguments it can find. It prints nothing if the interpreter is too old.
const describePython = `import sys
if sys.version_info >= (3, 8):
    import importlib.util, json, os, site
    found = [m for m in sys.argv[1:] if importlib.util.find_spec(m)]
    folders = [p for p in site.getsitepackages() if os.path.isdir(p)]
    print(json.dumps({"executable": getattr(sys, "_base_executable", "") or sys.executable,
                      "path": folders, "modules": found}))
`

// python is an interpreter that zygotes can use.
type python struct {
	Executable string   `json:"executable"` // the real interpreter
	Path       []string `json:"path"`       // folders of installed packages
	Modules    []string `json:"modules"`    // the modules of the package sets that it has
}

// usualPlaces are tried after the python3 on PATH, because that one may be in a home folder which the sandbox's user
// cannot enter.
var usualPlaces = []string{"/usr/bin/python3", "/usr/local/bin/python3"}

// findPythons returns real interpreters in order of preference. If an interpreter is named, it is the only one.
func findPythons(ctx context.Context, o Options, modules []string) ([]python, error) {
	places := append([]string{"python3"}, usualPlaces...)
	switch {
	case o.Python != "":
		places = []string{o.Python}
	case o.Preferred != "":
		places = append([]string{o.Preferred}, places...)
	}
	var found []python
	var faults []error
	for _, place := range places {
		p, err := resolvePython(ctx, place, modules)
		if err != nil {
			faults = append(faults, err)
		} else if !slices.ContainsFunc(found, func(f python) bool { return f.Executable == p.Executable }) {
			found = append(found, p)
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("%w: install Python 3.8 or later (Debian: apt-get install python3) or name one: %w",
			sandbox.ErrNoPython, errors.Join(faults...))
	}
	return found, nil
}

func resolvePython(ctx context.Context, place string, modules []string) (python, error) {
	path, err := exec.LookPath(place)
	if err != nil {
		return python{}, fmt.Errorf("find %s: %w", place, err)
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, path, append([]string{"-I", "-c", describePython}, modules...)...).Output()
	if err != nil {
		return python{}, fmt.Errorf("ask %s for its real path: %w", path, err)
	}
	if strings.TrimSpace(string(out)) == "" {
		return python{}, fmt.Errorf("use %s: it is older than Python 3.8", path)
	}
	var p python
	if err := json.Unmarshal(out, &p); err != nil {
		return python{}, fmt.Errorf("ask %s for its real path: it said %q: %w", path, out, err)
	}
	if p.Executable, err = filepath.EvalSymlinks(p.Executable); err != nil {
		return python{}, fmt.Errorf("resolve interpreter behind %s: %w", path, err)
	}
	return p, nil
}

// sets returns the package sets whose modules the interpreter has.
func (p python) sets(all []PackageSet) sets {
	s := sets{all: all}
	for _, set := range all {
		if !slices.ContainsFunc(set.Modules, func(m string) bool { return !slices.Contains(p.Modules, m) }) {
			s.available = append(s.available, set)
		}
	}
	return s
}
