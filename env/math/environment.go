package math

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/internal/dataset"
	"github.com/ropewalk/ropewalk/internal/refusal"
)

// Math is the environment. Its tasks are questions.
type Math struct {
	name   string
	fields fields
	bank   *dataset.Bank[question]
}

func open(name string, o env.Options) (env.Environment, error) {
	f, err := env.Read[fields](o.Settings)
	if err != nil {
		return nil, err
	}
	load := func(ctx context.Context) (tasks dataset.Tasks[question], err error) {
		if f.Train == "" {
			return tasks, refusal.Unusablef("environment.settings.train: names no file of questions")
		}
		return dataset.Load(ctx, f.Fields, f.format(), o.Fetch, f.read)
	}
	return &Math{name: name, fields: f, bank: dataset.NewBank("math", load)}, nil
}

// Name returns the name in recipes.
func (m *Math) Name() string { return m.name }

// Task returns a question. The questions come in a seeded order, and each comes once before any repeats.
func (m *Math) Task(ctx context.Context, at env.Draw) (env.Task, error) {
	var q question
	err := ctx.Err()
	switch {
	case err != nil:
	case at.Split == env.Train:
		q, err = m.bank.AtTrain(ctx, at.Seed, at.Place())
	case at.Split == env.HeldOut:
		q, err = m.bank.AtHeldOut(ctx, at.Index)
	default:
		err = fmt.Errorf("there is no split %q", at.Split)
	}
	if err != nil {
		return env.Task{}, fmt.Errorf("draw a question: %w", err)
	}
	return q.task()
}

// task makes the task of a question.
func (q question) task() (env.Task, error) {
	spec, err := json.Marshal(q)
	if err != nil {
		return env.Task{}, fmt.Errorf("write a question: %w", err)
	}
	return env.Task{ID: q.digest(), Level: max(q.level, 1), Text: q.Text, Answer: q.Answer, Spec: string(spec)}, nil
}

// digest is the task's id. The row's own id and its level do not count.
func (q question) digest() string {
	h := sha256.New()
	fmt.Fprintf(h, "%d %s %s", len(q.Text), q.Text, q.Answer)
	return hex.EncodeToString(h.Sum(nil))
}

// Instruction is empty, because the question says everything.
func (*Math) Instruction(env.Task) (string, error) { return "", nil }

// asked is an episode's state in JSON.
type asked struct {
	question
	Ended bool `json:"ended,omitempty"`
}

// Reset asks the question.
func (*Math) Reset(ctx context.Context, task env.Task) (env.State, env.Observation, error) {
	if err := ctx.Err(); err != nil {
		return nil, env.Observation{}, err
	}
	var q question
	if err := env.Decode([]byte(task.Spec), &q); err != nil {
		return nil, env.Observation{}, fmt.Errorf("read question %s: %w", task.ID, err)
	}
	if q.Text == "" || q.Answer == "" || q.digest() != task.ID {
		return nil, env.Observation{}, fmt.Errorf("read question %s: %.80q is not its text", task.ID, task.Spec)
	}
	state, err := json.Marshal(asked{question: q})
	return state, env.Seen(q.Text), err
}

// Step takes the answer and ends the episode. It compares texts; a run's reward compares answers.
func (*Math) Step(ctx context.Context, at env.State, action string) (env.State, env.Transition, error) {
	if err := ctx.Err(); err != nil {
		return nil, env.Transition{}, err
	}
	s, err := stateOf(at)
	if err != nil {
		return nil, env.Transition{}, err
	}
	if s.Ended {
		return nil, env.Transition{}, fmt.Errorf("answer a question: %w", env.ErrEnded)
	}
	answer := strings.TrimSpace(action)
	t := env.Transition{Done: true, Valid: answer != "", Success: answer == s.Answer, Observation: env.Seen("wrong")}
	if t.Success {
		t.Reward, t.Observation = 1, env.Seen("right")
	}
	s.Ended = true
	state, err := json.Marshal(s)
	return state, t, err
}

// Situation identifies the state. An episode has one turn.
func (*Math) Situation(at env.State) (string, error) {
	s, err := stateOf(at)
	return fmt.Sprintf("%s %t", s.digest(), s.Ended), err
}

func stateOf(at env.State) (s asked, err error) {
	if err := env.Decode(at, &s); err != nil {
		return s, fmt.Errorf("read the state of a question: %w", err)
	}
	if s.Text == "" || s.Answer == "" {
		return s, errors.New("read the state of a question: question or answer is missing")
	}
	return s, nil
}

// Draw draws a training question of any level.
func (m *Math) Draw(rng *rand.Rand, _ env.Lesson) (env.Task, error) {
	questions, err := m.bank.Train(context.Background())
	if err != nil {
		return env.Task{}, fmt.Errorf("draw a question to demonstrate: %w", err)
	}
	return questions[rng.IntN(len(questions))].task()
}

// Demonstrate shows the form of an episode and not how to find the answer: the gold is printed by a program, where the
// prompt format has programs, and given as the answer.
func (*Math) Demonstrate(_ context.Context, _ *rand.Rand, task env.Task, _ env.Lesson,
	act func(env.Move) (env.Shown, error)) error {
	code, err := json.Marshal(task.Answer) // a JSON string is one of Python's
	if err != nil {
		return fmt.Errorf("demonstrate question %s: %w", task.ID, err)
	}
	if _, err := act(env.Move{Code: "print(" + string(code) + ")"}); err != nil {
		return err
	}
	_, err = act(env.Move{Answer: task.Answer})
	return err
}
