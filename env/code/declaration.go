package code

import (
	"context"
	"strings"

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
	Rows: func(ctx context.Context, s env.Settings, file string, each func(env.FileRow)) (string, error) {
		f, err := env.Read[fields](s)
		if err != nil {
			return "", err
		}
		return dataset.Look(ctx, f.Fields, file, format, nil, read,
			func(r dataset.Row, f function, fault error) {
				row := env.FileRow{Number: r.Number, Shape: r.Shape, Cells: r.Cells, Fault: fault}
				if fault == nil {
					row.Task, row.Fault = f.Task()
				}
				each(row)
			})
	},
	Open: open,
}

// fields are the settings in a recipe. Without a training file the tasks are generated.
type fields struct {
	dataset.Fields
}

// format is the form of the rows.
var format = dataset.Format{Required: []string{"prompt", "entry_point", "test"},
	Optional: []string{"canonical_solution", "task_id"}, ID: "task_id", Key: []string{"prompt"}, Shapes: Shapes}

// Shapes are the shapes of public sets that are recognised.
var Shapes = []dataset.Shape{
	mbpp("MBPP", "text"),
	mbpp("MBPP, sanitized", "prompt"),
	{Name: "TACO, APPS", Needs: []string{"question", "input_output"},
		Columns: map[string]string{"prompt": "{question}\n{starter_code}", "entry_point": "starter_code | defined",
			"test": "input_output | tests"},
		Filter: map[string]string{"input_output.fn_name": "!=", "starter_code": "!="},
		Note:   "tasks that call a function; those of programs that read their standard input are left out"},
	{Name: "HumanEval", Needs: []string{"prompt", "entry_point", "test"}},
}

// mbpp is MBPP's shape. The prompt shows the tests, which say what the function is called.
func mbpp(name, text string) dataset.Shape {
	return dataset.Shape{Name: name, Needs: []string{text, "code", "test_list"}, Columns: map[string]string{
		"prompt":      "{" + text + "}\nThe program must pass these tests:\n\n{test_list | lines}\n",
		"entry_point": "code | defined", "test": "{test_list | lines}", "canonical_solution": "code"}}
}

// function is one task.
type function struct {
	ID       string `json:"task_id,omitempty"` // the row's own
	Prompt   string `json:"prompt"`
	Entry    string `json:"entry_point"`
	Test     string `json:"test"`
	Solution string `json:"canonical_solution,omitempty"` // the function's body, or a whole program
	level    int
	set      string // evaluation set
}

// read makes a row a task.
func read(r dataset.Row) (function, error) {
	f := function{ID: r.Values["task_id"], Prompt: r.Values["prompt"], Entry: r.Values["entry_point"],
		Test: r.Values["test"], Solution: r.Values["canonical_solution"], level: 1, set: r.Set}
	if !name.MatchString(f.Entry) {
		return f, r.Fault(dataset.BadField, "entry_point must be the name of a function, got %.40q", f.Entry)
	}
	if !calls(f.Test, f.Entry) && !calls(f.Test, "check") {
		return f, r.Fault(dataset.BadField, "test neither defines check nor calls %s", f.Entry)
	}
	return f, nil
}

// calls reports whether a program calls or defines a function.
func calls(program, function string) bool {
	for rest, found := program, true; found; {
		var before string
		if before, rest, found = strings.Cut(rest, function); !found {
			return false
		}
		inner := before != "" && name.MatchString("_"+before[len(before)-1:])
		if !inner && strings.HasPrefix(strings.TrimLeft(rest, " "), "(") {
			return true
		}
	}
	return false
}
