package code

import (
	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/internal/dataset"
)

// Declaration declares the environment.
var Declaration = env.Declaration{
	Name: "code", Doc: "Python functions that tests decide, from files such as HumanEval or generated",
	Source: "HumanEval (Chen et al. 2021)", Sandboxed: true, Listed: true, Demonstrated: true, Protocol: "program",
	Rewards: []string{"unit_tests"}, Strings: fixed, Settings: env.SettingsOf[fields](),
	Pin: func(s env.Settings) error {
		f, err := env.Read[fields](s)
		if err != nil {
			return err
		}
		return dataset.Pin(f.Fields, format, read, s)
	},
	Open: open,
}

// fields are the settings in a recipe. Without a training file the tasks are generated.
type fields struct {
	dataset.Fields
}

// format is the form of the rows.
var format = dataset.Format{Required: []string{"prompt", "entry_point", "test"},
	Optional: []string{"canonical_solution", "task_id"}, ID: "task_id", Key: []string{"prompt"}}

// function is one task.
type function struct {
	ID       string `json:"task_id,omitempty"` // the row's own
	Prompt   string `json:"prompt"`
	Entry    string `json:"entry_point"`
	Test     string `json:"test"`
	Solution string `json:"canonical_solution,omitempty"` // the function's body, or a whole program
	level    int
}

// read makes a row a task.
func read(r dataset.Row) (function, error) {
	f := function{ID: r.Values["task_id"], Prompt: r.Values["prompt"], Entry: r.Values["entry_point"],
		Test: r.Values["test"], Solution: r.Values["canonical_solution"], level: 1}
	if !name.MatchString(f.Entry) {
		return f, r.Fault(dataset.BadField, "entry_point must be the name of a function, got %.40q", f.Entry)
	}
	return f, nil
}
