package code

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/internal/dataset"
	"github.com/ropewalk/ropewalk/internal/refusal"
)

// name matches a Python name.
var name = regexp.MustCompile(`^[A-Za-z_][A-Za-z_0-9]*$`)

// Code is the environment. Its tasks are questions whose answers are programs. An episode runs nothing, so its answer
// is right only if it is the known solution; a run's reward runs the tests.
type Code struct {
	env.Questions
	fields dataset.Fields
	bank   *dataset.Bank[function] // nil if the tasks are generated
}

func open(o env.Options) (env.Environment, error) {
	f, err := env.Read[dataset.Fields](o.Settings)
	if err != nil {
		return nil, err
	}
	c := &Code{fields: f, Questions: env.Questions{Gold: solutionOf, Mark: env.SameText}}
	if f.Train != "" {
		c.bank = dataset.NewBank("code", func(ctx context.Context) (dataset.Tasks[function], error) {
			return dataset.Load(ctx, f, format, o.Fetch, read)
		})
	}
	return c, nil
}

// Name returns "code".
func (*Code) Name() string { return Declaration.Name }

// Task returns a function to write. Those of a file come in a seeded order, and each comes once before any repeats.
func (c *Code) Task(ctx context.Context, at env.Draw) (env.Task, error) {
	var f function
	heldOut, err := at.Split.HeldOut()
	switch {
	case err != nil:
	case c.bank == nil:
		f = generated(at)
	default:
		f, err = c.bank.Draw(ctx, heldOut, at.Seed, at.Place(), at.Index)
	}
	if err != nil {
		return env.Task{}, fmt.Errorf("draw a function: %w", err)
	}
	return f.Task()
}

// Tasks lists the tasks of a split in the order of the files.
func (c *Code) Tasks(ctx context.Context, split env.Split) ([]env.Task, error) {
	if c.bank == nil {
		return nil, refusal.Unusablef("environment.settings.train: names no file, and generated tasks are not listed")
	}
	all, err := c.bank.List(ctx, split == env.HeldOut)
	if err != nil {
		return nil, fmt.Errorf("list the tasks: %w", err)
	}
	return env.TasksOf(all)
}

// TasksAt reads the tasks of another file.
func (c *Code) TasksAt(ctx context.Context, path string) ([]env.Task, string, error) {
	all, digest, err := dataset.LoadSet(ctx, c.fields, path, format, read)
	if err != nil {
		return nil, "", err
	}
	tasks, err := env.TasksOf(all)
	return tasks, digest, err
}

// Task makes the task of a function.
func (f function) Task() (env.Task, error) {
	gold, err := env.Tests{Prompt: f.Prompt, Entry: f.Entry, Test: f.Test}.Gold()
	if err != nil {
		return env.Task{}, err
	}
	spec, err := json.Marshal(f)
	if err != nil {
		return env.Task{}, fmt.Errorf("write a task: %w", err)
	}
	return env.Task{ID: f.digest(), Level: max(f.level, 1), Type: f.set, Text: f.Prompt, Answer: gold,
		Spec: string(spec)}, nil
}

// digest is the task's id. The row's own id and its solution do not count.
func (f function) digest() string {
	h := sha256.New()
	fmt.Fprintf(h, "%d %s %s %s", len(f.Prompt), f.Prompt, f.Entry, f.Test)
	return hex.EncodeToString(h.Sum(nil))
}

// solutionOf returns the known solution of a task as a whole program, or "".
func solutionOf(task env.Task) (string, error) {
	var f function
	if err := env.Decode([]byte(task.Spec), &f); err != nil {
		return "", err
	}
	switch {
	case f.Prompt == "" || f.Entry == "" || f.Test == "":
		return "", errors.New("prompt, entry_point or test is missing")
	case f.digest() != task.ID:
		return "", errors.New("it is another task")
	}
	return f.program(), nil
}

// program is the known solution as a whole program, or "".
func (f function) program() string {
	if strings.HasPrefix(strings.TrimLeft(f.Solution, "\n"), " ") || strings.HasPrefix(f.Solution, "\t") {
		return strings.TrimSpace(f.Prompt + f.Solution) // the function's body
	}
	return strings.TrimSpace(f.Solution)
}

// solutionDraws bounds how many tasks are drawn to find one with a known solution.
const solutionDraws = 1000

// Draw draws a training task whose solution is known.
func (c *Code) Draw(rng *rand.Rand, _ env.Lesson) (env.Task, error) {
	if c.bank == nil {
		return generated(env.Draw{Split: env.Train, Seed: rng.Uint64()}).Task()
	}
	functions, err := c.bank.List(context.Background(), false)
	if err != nil {
		return env.Task{}, fmt.Errorf("draw a function to demonstrate: %w", err)
	}
	for range solutionDraws {
		if f := functions[rng.IntN(len(functions))]; f.Solution != "" {
			return f.Task()
		}
	}
	return env.Task{}, refusal.Unusablef("draw a function to demonstrate: %d rows were drawn, and none has a "+
		"canonical_solution", solutionDraws)
}

// Demonstrate answers with the known solution.
func (*Code) Demonstrate(_ context.Context, _ *rand.Rand, task env.Task, _ env.Lesson,
	act func(env.Move) (env.Shown, error)) error {
	program, err := solutionOf(task)
	if err != nil {
		return fmt.Errorf("demonstrate task %s: %w", task.ID, err)
	}
	_, err = act(env.Move{Answer: program})
	return err
}
