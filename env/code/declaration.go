package code

import (
	"context"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/internal/dataset"
)

// Declaration declares the environment. Without a training file its tasks are generated.
var Declaration = env.Declaration{
	Name: "code", Doc: "Python functions that tests decide, from files such as HumanEval or generated",
	Source: "HumanEval (Chen et al. 2021)", Sandboxed: true, Listed: true, Demonstrated: true, Protocol: "program",
	Rewards: []string{"unit_tests"}, Strings: fixed, Settings: env.SettingsOf[dataset.Fields](),
	Pin: func(s env.Settings) error {
		f, err := env.Read[dataset.Fields](s)
		if err != nil {
			return err
		}
		return dataset.Pin(f, format, read, s)
	},
	Rows: func(ctx context.Context, o env.Options, file string, each func(env.FileRow)) (string, error) {
		f, err := env.Read[dataset.Fields](o.Settings)
		if err != nil {
			return "", err
		}
		return dataset.Look(ctx, f, file, format, o.Fetch, read,
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

// format is the form of the rows.
var format = dataset.Format{Required: []string{"prompt", "entry_point", "test"},
	Optional: []string{"canonical_solution", "task_id"}, ID: "task_id", Key: []string{"prompt"},
	Many: []string{"entry_point"}, Shapes: Shapes}

// Shapes are the shapes of public sets that are recognised.
var Shapes = []dataset.Shape{
	mbpp("MBPP", "text"),
	mbpp("MBPP, sanitized", "prompt"),
	{Name: "TACO, APPS", Needs: []string{"question", "input_output"},
		Columns: map[string]string{"prompt": "{question}\n{starter_code}", "entry_point": "input_output | entry",
			"test": "input_output | tests"}},
	{Name: "LiveCodeBench", Needs: []string{"question_content", "public_test_cases"},
		Columns: map[string]string{"prompt": "{question_content}\n{starter_code}", "entry_point": "metadata | entry",
			"test": "{public_test_cases | tests}{private_test_cases | tests}", "task_id": "question_id"},
		Note: "rows are long: raise max_row_kb"},
	{Name: "HumanEval", Needs: []string{"prompt", "entry_point", "test"}},
}

// mbpp is MBPP's shape. The prompt shows the tests, which say what the function is called.
func mbpp(name, text string) dataset.Shape {
	const test = "{test_imports | lines}{test_setup_code | lines}{test_list | lines}"
	return dataset.Shape{Name: name, Needs: []string{text, "code", "test_list"}, Columns: map[string]string{
		"prompt":      "{" + text + "}\nThe program must pass these tests:\n\n" + test,
		"entry_point": "code | defined", "test": test, "canonical_solution": "code"}}
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
	f := function{ID: r.Values["task_id"], Prompt: r.Values["prompt"], Test: r.Values["test"],
		Solution: r.Values["canonical_solution"], level: 1, set: r.Set}
	f.Entry = tested(r.Lists["entry_point"], f.Test)
	calls := func(name string) bool { return callIn(f.Test, name) >= 0 }
	switch {
	case !name.MatchString(f.Entry):
		return f, r.Fault("entry_point must be the name of a function, got %.40q", f.Entry)
	case !slices.ContainsFunc([]string{f.Entry, "check", "candidate"}, calls):
		return f, r.Fault("test neither defines check nor calls %s", f.Entry)
	}
	return f, nil
}

// tested returns which of several functions the tests are about: the first one that their last line calls or, if it
// calls none, the line before it. Without such a line it is the last function.
func tested(names []string, test string) (found string) {
	lines := strings.Split(test, "\n")
	for _, line := range slices.Backward(lines) {
		least := len(line)
		for _, name := range names {
			if at := callIn(line, name); at >= 0 && at < least {
				found, least = name, at
			}
		}
		if found != "" {
			return found
		}
	}
	return names[len(names)-1]
}

// callIn returns where a program first calls or defines a function; -1 if it does not.
func callIn(program, function string) int {
	for at := 0; ; at++ {
		next := strings.Index(program[at:], function)
		if next < 0 {
			return -1
		}
		at += next
		inner := at > 0 && name.MatchString("_"+program[at-1:at])
		if !inner && strings.HasPrefix(strings.TrimLeft(program[at+len(function):], " "), "(") {
			return at
		}
	}
}
