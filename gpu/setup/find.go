package setup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/internal/python"
)

// Folder is the own environment's name below the state folder.
const Folder = "gpu-python"

// setupCommand returns the command that every error names.
func setupCommand(more []Package) string {
	command := "ropewalk gpu setup"
	for _, p := range more {
		if p == Peft() {
			command += " --with-lora"
		}
	}
	return "`" + command + "` installs what is needed"
}

// Python is an interpreter that can run the engine.
type Python struct {
	Path     string            `json:"path"`
	Version  string            `json:"version"`
	Packages map[string]string `json:"packages"` // version by name; "" of what is missing
	Source   string            `json:"source"`   // how it was found
}

// ErrNoPython says that no interpreter was found.
var ErrNoPython = errors.New("no Python was found")

// UnfitError is an interpreter that cannot run the engine.
type UnfitError struct {
	Python Python
	Err    error
}

// Error names the interpreter and why it cannot run the engine.
func (e *UnfitError) Error() string {
	return fmt.Sprintf(
		"%s (Python %s, %s) cannot run the torch engine: %v", e.Python.Path, e.Python.Version, e.Python.Source, e.Err,
	)
}

// Unwrap returns the reason.
func (e *UnfitError) Unwrap() error { return e.Err }

// candidate is an interpreter that may be able to run the engine.
type candidate struct {
	path, source string
	only         bool // nothing else is tried: it was named
}

// candidates returns the candidates in the order in which they are tried. A candidate that the user names is the only
// one.
func candidates(state string) []candidate {
	if named := os.Getenv(python.Variable); named != "" {
		return []candidate{{named, python.Variable + " names it", true}}
	}
	return []candidate{
		{interpreter(filepath.Join(state, Folder)), "the own environment", false},
		{"python3", "python3 of PATH", false},
	}
}

func interpreter(environment string) string { return filepath.Join(environment, "bin", "python") }

// Find returns the first interpreter that can run the engine: the one that ROPEWALK_PYTHON names, else the one of the
// own environment below the folder state, else python3. more names packages that are needed in addition to the engine's
// usual ones. The error says what each candidate lacks and how to repair it.
func Find(ctx context.Context, state string, more ...Package) (Python, error) {
	var unfit []error
	for _, c := range candidates(state) {
		p, err := probe(ctx, c, more...)
		switch {
		case err == nil:
			return p, nil
		case ctx.Err() != nil:
			return Python{}, ctx.Err()
		case errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist):
			if c.only {
				return Python{}, fmt.Errorf(
					"%w: %s names %s, which is not there (%s, or unset it)", ErrNoPython, python.Variable, c.path,
					setupCommand(more),
				)
			}
		default:
			unfit = append(unfit, err)
		}
	}
	if len(unfit) == 0 {
		return Python{}, fmt.Errorf("%w: install python3 (Debian: apt-get install python3 python3-venv); then %s",
			ErrNoPython, setupCommand(more))
	}
	return Python{}, fmt.Errorf("%w (%s)", errors.Join(unfit...), setupCommand(more))
}

// probeLimit is the maximum time for probing one interpreter.
const probeLimit = 30 * time.Second

// look is a program that prints an interpreter's versions. It does not import the packages, because torch takes
// seconds.
const look = `import json, platform, sys
from importlib import metadata
def version(name):
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""
print(json.dumps({"version": platform.python_version(), "packages": {n: version(n) for n in sys.argv[1:]}}))
`

// probe asks one interpreter, isolated as the engine will be, for its versions.
func probe(ctx context.Context, c candidate, more ...Package) (Python, error) {
	path, err := exec.LookPath(c.path)
	if err != nil {
		return Python{}, err
	}
	if path, err = filepath.Abs(path); err != nil {
		return Python{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, probeLimit)
	defer cancel()
	args := []string{"-I", "-c", look}
	// peft's version is reported even if it is not needed
	for _, p := range append(packages(), Peft()) {
		args = append(args, p.Name)
	}
	p := Python{Path: path, Source: c.source}
	cmd := exec.CommandContext(ctx, path, args...)
	out, err := cmd.Output()
	if err != nil {
		return p, fmt.Errorf("start %s (%s): %w%s", path, c.source, err, lastLine(err))
	}
	if err := json.Unmarshal(out, &p); err != nil {
		return p, fmt.Errorf("%s (%s) does not answer as a Python does: %w", path, c.source, badinput.JSON(err))
	}
	if v, err := parse(p.Version); err != nil || v.before(oldestPython) {
		return p, &UnfitError{p, fmt.Errorf("Python %s or newer is needed", oldestPython)}
	}
	if err := Check(p.Packages, more...); err != nil {
		return p, &UnfitError{p, err}
	}
	return p, nil
}

// lastLine is the last line of what a failed command wrote.
func lastLine(err error) string {
	var exit *exec.ExitError
	if !errors.As(err, &exit) || len(exit.Stderr) == 0 {
		return ""
	}
	lines := strings.Split(strings.TrimSpace(string(exit.Stderr)), "\n")
	return ": " + lines[len(lines)-1]
}
