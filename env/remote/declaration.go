package remote

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/internal/python"
)

// Python declares the environment of the user's own Python objects.
var Python = env.Declaration{
	Name:        "python",
	Doc:         "the user's own environment or questions in Python: Gymnasium's form, or questions with a score",
	Interactive: true, Demonstrated: true, Protocol: "think_action",
	Rewards:  []string{"arlarena", "spear", "spear_agent"},
	Strings:  func() []string { return nil },
	Settings: env.SettingsOf[pythonFields](),
	Wants: func(s env.Settings) string {
		if f, err := env.Read[pythonFields](s); err != nil || f.Module != "" {
			return ""
		}
		return "module: names no Python factory; set it to package:factory"
	},
	Starts: func(s env.Settings) string {
		f, err := env.Read[pythonFields](s)
		if err != nil || f.Module == "" {
			return ""
		}
		return strings.TrimSpace("Python " + f.Module + " " + f.Path)
	},
	Undemonstrated: func(s env.Settings) string {
		if f, err := env.Read[pythonFields](s); err != nil || f.Kind == kindQuestion || f.Expert {
			return ""
		}
		return "only questions (kind: question) hold their answers, and expert: true says that the environment has " +
			"a method expert"
	},
	Open: openPython,
}

// kindQuestion is the kind of tasks that one answer ends.
const kindQuestion = "question"

// pythonFields are the settings in a recipe.
type pythonFields struct {
	Module      string `json:"module" doc:"the factory, as package:name. It is called with kwargs and returns an environment with reset and step, or for kind question an object with score_answer or a pair (rows, score)" default:"\"\""`
	Kind        string `json:"kind" doc:"gymnasium: reset(seed=…) and step(action); question: one answer, which is scored" default:"gymnasium" enum:"gymnasium|question"`
	Kwargs      string `json:"kwargs" doc:"the factory's arguments, a JSON object. They must fix every seed of the factory's own" default:"'{}'"`
	Path        string `json:"path" doc:"absolute path of a folder that modules are also loaded from; every worker reads it" default:"\"\""`
	Digest      string `json:"code_sha256" quiet:"true" doc:"digest that the code must have, as a run records it: the SHA-256 of the module's file, or of the lines for all files that it imports from its own folder" default:"\"\""`
	Interpreter string `json:"interpreter" doc:"name of the environment variable that names the worker's Python interpreter; python3 if the variable is not set" default:"ROPEWALK_PYTHON"`
	Processes   int    `json:"processes" quiet:"true" doc:"Python processes of a worker, among which its sessions are divided; 0 = as many as it has cores, and one for kind question" default:"0" min:"0" max:"1024"`
	Expert      bool   `json:"expert" quiet:"true" doc:"the environment's method expert demonstrates its tasks: it returns the next actions towards success" default:"false"`
	commonFields
}

// processes is how many processes a worker runs at most.
func (f pythonFields) processes() int {
	n := f.Processes
	if n == 0 && f.Kind != kindQuestion { // each process would make the list of questions
		n = runtime.GOMAXPROCS(0)
	}
	return min(max(n, 1), f.Sessions)
}

// openPython makes the environment. No process is started before the first episode.
func openPython(o env.Options) (env.Environment, error) {
	f, err := env.Read[pythonFields](o.Settings)
	if err != nil {
		return nil, err
	}
	return f.open("python", "")
}

// open makes the environment with a name. text is the module's, if it is no file.
func (f pythonFields) open(name, text string) (env.Environment, error) {
	var kwargs map[string]any
	if err := json.Unmarshal([]byte(f.Kwargs), &kwargs); err != nil || kwargs == nil {
		return nil, fmt.Errorf("kwargs: must be a JSON object, got %s", f.Kwargs)
	}
	if f.Path != "" && !filepath.IsAbs(f.Path) {
		return nil, fmt.Errorf("path: must be absolute, because workers read it too, got %s", f.Path)
	}
	if f.Module != "" && !callable(f.Module) {
		return nil, fmt.Errorf("module: must be package:name, got %s", f.Module)
	}
	if f.Digest != "" && !digestForm.MatchString(f.Digest) {
		return nil, fmt.Errorf("code_sha256: must be 64 hexadecimal digits in lower case, got %s", f.Digest)
	}
	actions, err := named(f.Actions)
	if err != nil {
		return nil, err
	}
	if (f.Tasks == 0) != (f.HeldOut == 0) {
		return nil, errors.New("tasks, held_out: both must be 0, for the environment's method tasks says both, or " +
			"neither")
	}
	if f.Tasks == 0 && f.Kind == kindQuestion {
		return nil, errors.New("tasks: must be at least 1, for a list of questions does not say which are held out")
	}
	identity, err := json.Marshal([]any{f.Module, f.Kind, kwargs})
	if err != nil {
		return nil, fmt.Errorf("kwargs: %w", err)
	}
	open := map[string]any{"module": f.Module, "kind": f.Kind, "kwargs": kwargs, "path": f.Path,
		"actions": append([]string{}, actions...)}
	port := newPythonPort(f.processes(), open, f.step(), func() (*process, error) {
		if f.Module == "" {
			return nil, errors.New("module: names no Python factory")
		}
		c := code{interpreter(f.Interpreter), f.Module, text, f.Path, f.Digest, f.step()}
		return startProcess(c, f.most(), f.idle())
	})
	s := f.settings(name, string(identity), actions)
	s.Solved, s.Expert = f.Kind == kindQuestion || f.Expert, f.Expert
	return New(port, s), nil
}

// interpreter returns the worker's Python.
func interpreter(variable string) string {
	return cmp.Or(os.Getenv(cmp.Or(variable, python.Variable)), "python3")
}
