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

// Code is the environment. Its tasks are questions whose answers are programs.
type Code struct {
	fields fields
	bank   *dataset.Bank[function] // nil if the tasks are generated
}

func open(o env.Options) (env.Environment, error) {
	f, err := env.Read[fields](o.Settings)
	if err != nil || f.Train == "" {
		return &Code{}, err
	}
	return &Code{fields: f, bank: dataset.NewBank("code", func(ctx context.Context) (dataset.Tasks[function], error) {
		return dataset.Load(ctx, f.Fields, format, o.Fetch, read)
	})}, nil
}

// Name returns "code".
func (*Code) Name() string { return Declaration.Name }

// Task returns a function to write. Those of a file come in a seeded order, and each comes once before any repeats.
func (c *Code) Task(ctx context.Context, at env.Draw) (env.Task, error) {
	var f function
	err := ctx.Err()
	switch {
	case err != nil:
	case at.Split != env.Train && at.Split != env.HeldOut:
		err = fmt.Errorf("there is no split %q", at.Split)
	case c.bank == nil:
		f = generated(at)
	case at.Split == env.Train:
		f, err = c.bank.AtTrain(ctx, at.Seed, at.Place())
	default:
		f, err = c.bank.AtHeldOut(ctx, at.Index)
	}
	if err != nil {
		return env.Task{}, fmt.Errorf("draw a function: %w", err)
	}
	return f.task()
}

// task makes the task of a function.
func (f function) task() (env.Task, error) {
	gold, err := env.Tests{Prompt: f.Prompt, Entry: f.Entry, Test: f.Test}.Gold()
	if err != nil {
		return env.Task{}, err
	}
	spec, err := json.Marshal(f)
	if err != nil {
		return env.Task{}, fmt.Errorf("write a task: %w", err)
	}
	return env.Task{ID: f.digest(), Level: max(f.level, 1), Text: f.Prompt, Answer: gold, Spec: string(spec)}, nil
}

// digest is the task's id. The row's own id and its solution do not count.
func (f function) digest() string {
	h := sha256.New()
	fmt.Fprintf(h, "%d %s %s %s", len(f.Prompt), f.Prompt, f.Entry, f.Test)
	return hex.EncodeToString(h.Sum(nil))
}

// Instruction is empty, because the prompt says everything.
func (*Code) Instruction(env.Task) (string, error) { return "", nil }

// asked is an episode's state in JSON.
type asked struct {
	function
	Ended bool `json:"ended,omitempty"`
}

func (f function) check() error {
	if f.Prompt == "" || f.Entry == "" || f.Test == "" {
		return errors.New("prompt, entry_point or test is missing")
	}
	return nil
}

// Reset shows the prompt.
func (*Code) Reset(ctx context.Context, task env.Task) (env.State, env.Observation, error) {
	if err := ctx.Err(); err != nil {
		return nil, env.Observation{}, err
	}
	var f function
	err := env.Decode([]byte(task.Spec), &f)
	if err == nil {
		err = f.check()
	}
	if err == nil && f.digest() != task.ID {
		err = errors.New("it is another task")
	}
	if err != nil {
		return nil, env.Observation{}, fmt.Errorf("read task %s: %w", task.ID, err)
	}
	state, err := json.Marshal(asked{function: f})
	return state, env.Seen(f.Prompt), err
}

// Step takes the program and ends the episode. An episode runs nothing, so the step succeeds only for the known
// solution; a run's reward runs the tests.
func (*Code) Step(ctx context.Context, at env.State, action string) (env.State, env.Transition, error) {
	if err := ctx.Err(); err != nil {
		return nil, env.Transition{}, err
	}
	s, err := stateOf(at)
	if err != nil {
		return nil, env.Transition{}, err
	}
	if s.Ended {
		return nil, env.Transition{}, fmt.Errorf("answer with a program: %w", env.ErrEnded)
	}
	program := strings.TrimSpace(action)
	t := env.Transition{Done: true, Valid: program != "", Observation: env.Seen("not the known solution")}
	if t.Valid && program == s.program() {
		t.Success, t.Reward, t.Observation = true, 1, env.Seen("the known solution")
	}
	s.Ended = true
	state, err := json.Marshal(s)
	return state, t, err
}

// program is the known solution as a whole program, or "".
func (f function) program() string {
	switch {
	case f.Solution == "":
		return ""
	case strings.HasPrefix(strings.TrimLeft(f.Solution, "\n"), " "), strings.HasPrefix(f.Solution, "\t"):
		return strings.TrimSpace(f.Prompt + f.Solution) // the function's body
	}
	return strings.TrimSpace(f.Solution)
}

// Situation identifies the state. An episode has one turn.
func (*Code) Situation(at env.State) (string, error) {
	s, err := stateOf(at)
	return fmt.Sprintf("%s %t", s.digest(), s.Ended), err
}

func stateOf(at env.State) (s asked, err error) {
	if err = env.Decode(at, &s); err == nil {
		err = s.check()
	}
	if err != nil {
		return s, fmt.Errorf("read the state of a task: %w", err)
	}
	return s, nil
}

// solutionDraws bounds how many tasks are drawn to find one with a known solution.
const solutionDraws = 1000

// Draw draws a training task whose solution is known.
func (c *Code) Draw(rng *rand.Rand, _ env.Lesson) (env.Task, error) {
	if c.bank == nil {
		return generated(env.Draw{Split: env.Train, Seed: rng.Uint64()}).task()
	}
	functions, err := c.bank.Train(context.Background())
	if err != nil {
		return env.Task{}, fmt.Errorf("draw a function to demonstrate: %w", err)
	}
	for range solutionDraws {
		if f := functions[rng.IntN(len(functions))]; f.Solution != "" {
			return f.task()
		}
	}
	return env.Task{}, refusal.Unusablef("draw a function to demonstrate: %d rows were drawn, and none has a "+
		"canonical_solution", solutionDraws)
}

// Demonstrate answers with the known solution.
func (*Code) Demonstrate(_ context.Context, _ *rand.Rand, task env.Task, _ env.Lesson,
	act func(env.Move) (env.Shown, error)) error {
	var f function
	if err := env.Decode([]byte(task.Spec), &f); err != nil {
		return fmt.Errorf("demonstrate task %s: %w", task.ID, err)
	}
	_, err := act(env.Move{Answer: f.program()})
	return err
}
