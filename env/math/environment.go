package math

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/internal/dataset"
	"github.com/ropewalk/ropewalk/internal/refusal"
	"github.com/ropewalk/ropewalk/rl/words"
)

// Math is the environment. Its tasks are questions.
type Math struct {
	env.Questions
	name   string
	kind   kind
	fields dataset.Fields
	bank   *dataset.Bank[question]
}

func (k kind) open(name string, o env.Options) (env.Environment, error) {
	f, err := env.Read[dataset.Fields](o.Settings)
	if err != nil {
		return nil, err
	}
	load := func(ctx context.Context) (tasks dataset.Tasks[question], err error) {
		if f.Train == "" {
			return tasks, refusal.Unusablef("environment.settings.train: names no file of questions")
		}
		return dataset.Load(ctx, f, k.format, o.Fetch, k.read)
	}
	return &Math{name: name, kind: k, fields: f, bank: dataset.NewBank("math", load),
		Questions: env.Questions{Gold: goldOf, Mark: k.mark}}, nil
}

// Name returns the name in recipes.
func (m *Math) Name() string { return m.name }

// Task returns a question. The questions come in a seeded order, and each comes once before any repeats.
func (m *Math) Task(ctx context.Context, at env.Draw) (env.Task, error) {
	var q question
	heldOut, err := at.Split.HeldOut()
	if err == nil {
		q, err = m.bank.Draw(ctx, heldOut, at.Seed, at.Place(), at.Index)
	}
	if err != nil {
		return env.Task{}, fmt.Errorf("draw a question: %w", err)
	}
	return q.Task()
}

// Tasks lists the tasks of a split in the order of the files.
func (m *Math) Tasks(ctx context.Context, split env.Split) ([]env.Task, error) {
	all, err := m.bank.List(ctx, split == env.HeldOut)
	if err != nil {
		return nil, fmt.Errorf("list the tasks: %w", err)
	}
	return env.TasksOf(all)
}

// TasksAt reads the tasks of another file.
func (m *Math) TasksAt(ctx context.Context, path string) ([]env.Task, string, error) {
	all, digest, err := dataset.LoadSet(ctx, m.fields, path, m.kind.format, m.kind.read)
	if err != nil {
		return nil, "", err
	}
	tasks, err := env.TasksOf(all)
	return tasks, digest, err
}

// Task makes the task of a question.
func (q question) Task() (env.Task, error) {
	spec, err := json.Marshal(q)
	if err != nil {
		return env.Task{}, fmt.Errorf("write a question: %w", err)
	}
	return env.Task{ID: q.digest(), Level: max(q.level, 1), Type: q.set, Text: q.Text, Answer: q.Answer,
		Spec: string(spec)}, nil
}

// digest is the task's id. The row's own id and its level do not count.
func (q question) digest() string {
	h := sha256.New()
	fmt.Fprintf(h, "%d %s %s%s", len(q.Text), q.Text, q.Answer, q.Functions)
	return hex.EncodeToString(h.Sum(nil))
}

// goldOf reads the gold of a task.
func goldOf(task env.Task) (string, error) {
	var q question
	if err := env.Decode([]byte(task.Spec), &q); err != nil {
		return "", err
	}
	if q.Text == "" || q.Answer == "" || q.digest() != task.ID {
		return "", fmt.Errorf("%.80q is not its text", task.Spec)
	}
	return q.Answer, nil
}

// sameWords marks answers by their words. An answer without a word is invalid.
func sameWords(answer, golds string) (valid, right bool) {
	valid = words.Normalize(answer) != ""
	return valid, valid && words.Exact(answer, env.SplitGolds(golds))
}

// Draw draws a training question of any level.
func (m *Math) Draw(rng *rand.Rand, _ env.Lesson) (env.Task, error) {
	questions, err := m.bank.List(context.Background(), false)
	if err != nil {
		return env.Task{}, fmt.Errorf("draw a question to demonstrate: %w", err)
	}
	return questions[rng.IntN(len(questions))].Task()
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
