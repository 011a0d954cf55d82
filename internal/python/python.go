// Package python finds the Python interpreter that Go code is compared with: the one that the environment variable
// ROPEWALK_PYTHON names, else python3. It also hands programs to interpreters. Package pythontest finds the interpreter
// for tests.
package python

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// Variable is the environment variable that names the interpreter. If it is not set, python3 on PATH is used.
const Variable = "ROPEWALK_PYTHON"

// look finds modules as import does but does not load them, because some take many seconds to load.
const look = `import importlib.util, sys
for name in sys.argv[1:]:
    if importlib.util.find_spec(name) is None:
        raise ModuleNotFoundError(f"No module named {name!r}")
`

// Find returns the interpreter if it has all modules. The error names the interpreter, the modules and Python's own
// message. If the context has ended, Find returns the context's error.
func Find(ctx context.Context, modules ...string) (string, error) {
	name := cmp.Or(os.Getenv(Variable), "python3")
	what := "start"
	if len(modules) > 0 {
		what = "import " + strings.Join(modules, " and ")
	}
	out, err := exec.CommandContext(ctx, name, append([]string{"-c", look}, modules...)...).CombinedOutput()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return name, nil
	case ctx.Err() != nil:
		return "", ctx.Err()
	case errors.As(err, &exit):
		err = fmt.Errorf("%w: %s", err, lastLine(out))
	}
	return "", fmt.Errorf("%s cannot %s: %w (set %s to one that can)", name, what, err, Variable)
}

// CheckNamed reports whether the interpreter that the environment variable names starts. Without the variable it checks
// nothing: programs then look for an interpreter themselves.
func CheckNamed(ctx context.Context) error {
	if os.Getenv(Variable) == "" {
		return nil
	}
	_, err := Find(ctx)
	return err
}

// lastLine returns the last line of out, which is where a traceback names its exception.
func lastLine(out []byte) string {
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return lines[len(lines)-1]
}
