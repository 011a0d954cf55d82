package remote

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/internal/python"
)

// Python declares the environment of the user's own Python objects.
var Python = env.Declaration{
	Name:        "python",
	Doc:         "the user's own environment or questions in Python: Gymnasium's form, or questions with a score",
	Interactive: true, Protocol: "think_action", Rewards: []string{"arlarena", "spear", "spear_agent"},
	Strings:  func() []string { return nil },
	Settings: env.SettingsOf[pythonFields](),
	Wants: func(s env.Settings) string {
		if f, err := env.Read[pythonFields](s); err != nil || f.Module != "" {
			return ""
		}
		return "module: names no Python factory; set it to package:factory"
	},
	Open: openPython,
}

// pythonFields are the settings in a recipe.
type pythonFields struct {
	Module      string  `json:"module" doc:"the factory, as package:name. It is called with kwargs and returns an environment with reset and step, or for kind question an object with score_answer or a pair (rows, score)" default:"\"\""`
	Kind        string  `json:"kind" doc:"gymnasium: reset(seed=…) and step(action); question: one answer, which is scored" default:"gymnasium" enum:"gymnasium|question"`
	Kwargs      string  `json:"kwargs" doc:"the factory's arguments, a JSON object. They must fix every seed of the factory's own" default:"'{}'"`
	Path        string  `json:"path" doc:"absolute path of a folder that modules are also loaded from; every worker reads it" default:"\"\""`
	Interpreter string  `json:"interpreter" doc:"name of the environment variable that names the worker's Python interpreter; python3 if the variable is not set" default:"ROPEWALK_PYTHON"`
	Actions     string  `json:"actions" doc:"names of discrete actions 0, 1, …, separated by commas; empty if an action is any text" default:"\"\""`
	Instruction string  `json:"instruction" doc:"what the policy is told at every turn" default:"\"\""`
	Tasks       int     `json:"tasks" doc:"number of training tasks, whose seeds count from 0" default:"1000" min:"1" max:"1000000"`
	HeldOut     int     `json:"held_out" doc:"number of held-out tasks, whose seeds follow" default:"100" min:"1" max:"1000000"`
	SuccessFrom float64 `json:"success_from" doc:"sum of rewards from which an ended episode is a success, if the environment's info has neither success nor is_success" default:"1"`
	StepSeconds float64 `json:"step_seconds" doc:"time limit of a reset or step" default:"30" min:"0.01" max:"3600"`
	MaxKB       int     `json:"max_kb" doc:"maximum length of an observation in KiB" default:"64" min:"1" max:"1024"`
	Sessions    int     `json:"sessions" doc:"sessions that a worker keeps alive at once; others are repeated when they go on" default:"64" min:"1" max:"4096"`
	IdleSeconds int     `json:"idle_seconds" doc:"time after which an unused session ends, and the process without sessions" default:"120" min:"1" max:"86400"`
}

// openPython makes the environment. No process is started before the first episode.
func openPython(o env.Options) (env.Environment, error) {
	f, err := env.Read[pythonFields](o.Settings)
	if err != nil {
		return nil, err
	}
	var kwargs map[string]any
	if err := json.Unmarshal([]byte(f.Kwargs), &kwargs); err != nil || kwargs == nil {
		return nil, fmt.Errorf("kwargs: must be a JSON object, got %s", f.Kwargs)
	}
	if f.Path != "" && !filepath.IsAbs(f.Path) {
		return nil, fmt.Errorf("path: must be absolute, because workers read it too, got %s", f.Path)
	}
	if pkg, name, ok := strings.Cut(f.Module, ":"); f.Module != "" && (!ok || pkg == "" || name == "") {
		return nil, fmt.Errorf("module: must be package:name, got %s", f.Module)
	}
	actions, err := named(f.Actions)
	if err != nil {
		return nil, err
	}
	identity, err := json.Marshal([]any{f.Module, f.Kind, kwargs})
	if err != nil {
		return nil, fmt.Errorf("kwargs: %w", err)
	}
	port := &pythonPort{
		interpreter: func() (string, error) { return interpreter(f) },
		open: map[string]any{"module": f.Module, "kind": f.Kind, "kwargs": kwargs, "path": f.Path,
			"actions": append([]string{}, actions...)},
		// A byte of text takes at most six in JSON.
		most: 6*f.MaxKB<<10 + 1<<14, idle: time.Duration(f.IdleSeconds) * time.Second,
	}
	return New(port, Settings{
		Name: "python", Identity: string(identity), Instruction: f.Instruction, Train: f.Tasks, HeldOut: f.HeldOut,
		Actions: actions, SuccessFrom: f.SuccessFrom, StepTime: time.Duration(f.StepSeconds * float64(time.Second)),
		MaxBytes: f.MaxKB << 10, Sessions: f.Sessions, Idle: time.Duration(f.IdleSeconds) * time.Second,
	}), nil
}

// interpreter returns the worker's Python.
func interpreter(f pythonFields) (string, error) {
	if f.Module == "" {
		return "", fmt.Errorf("module: names no Python factory")
	}
	return cmp.Or(os.Getenv(cmp.Or(f.Interpreter, python.Variable)), "python3"), nil
}

// named reads a list of action names.
func named(list string) ([]string, error) {
	if list == "" {
		return nil, nil
	}
	seen := map[string]bool{}
	names := strings.Split(list, ",")
	for i := range names {
		names[i] = strings.TrimSpace(names[i])
		if names[i] == "" || seen[names[i]] {
			return nil, fmt.Errorf("actions: name %d is empty or occurs twice in %q", i+1, list)
		}
		seen[names[i]] = true
	}
	return names, nil
}
