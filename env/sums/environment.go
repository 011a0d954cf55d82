// Package sums asks for the sum, the difference or the product of two numbers: a task that a small published model
// understands and often fails, so that a short run shows whether it learns.
//
// Glossary. The *expression* of a problem is its question in symbols ("37 + 45"), and its digest is the problem's id.
// One quarter of all ids is *held out* from training, the same quarter for every seed.
package sums

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/internal/seed"
)

// heldOutOf is the number of problems of which one is held out.
const heldOutOf = 4

// drawTries bounds the draws between two held-out problems. Settings with few problems run out of them.
const drawTries = 100_000

// Sums is the environment.
type Sums struct {
	fields fields

	mu      sync.Mutex
	rng     *rand.Rand // of the held-out problems
	heldOut []env.Task // the beginning of the held-out split, as far as it has been requested
	seen    map[string]bool
}

// Name returns the name in recipes.
func (*Sums) Name() string { return Declaration.Name }

// Task draws a problem. A training problem has a stream of its own. The held-out problems are distinct, and they are
// the same for all runs with the same settings.
func (s *Sums) Task(ctx context.Context, at env.Draw) (env.Task, error) {
	if err := ctx.Err(); err != nil {
		return env.Task{}, err
	}
	switch at.Split {
	case env.HeldOut:
		return s.heldOutTask(at.Index)
	case env.Train:
		rng := seed.Rand("sums training", at.Seed, uint64(at.Place()))
		for range drawTries {
			if t := s.draw(rng); !isHeldOut(t.ID) {
				return t, nil
			}
		}
		return env.Task{}, fmt.Errorf("draw a problem: the settings leave no problem to train on")
	}
	return env.Task{}, fmt.Errorf("draw a problem: there is no split %q", at.Split)
}

func (s *Sums) heldOutTask(index int) (env.Task, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.rng == nil {
		s.rng = seed.Rand("sums held out")
	}
	for tries := 0; len(s.heldOut) <= index; tries++ {
		if tries == drawTries {
			return env.Task{}, fmt.Errorf("draw held-out problem %d: the settings allow about %d", index,
				len(s.heldOut))
		}
		if t := s.draw(s.rng); isHeldOut(t.ID) && !s.seen[t.ID] {
			s.heldOut, s.seen[t.ID], tries = append(s.heldOut, t), true, 0
		}
	}
	return s.heldOut[index], nil
}

// draw draws a problem of either split.
func (s *Sums) draw(rng *rand.Rand) env.Task {
	op := s.fields.Operators[rng.IntN(len(s.fields.Operators))]
	low, high := s.fields.Lowest, s.fields.Highest
	if op == '*' {
		low, high = 2, s.fields.Factor
	}
	a, b := low+rng.IntN(high-low+1), low+rng.IntN(high-low+1)
	return task(fmt.Sprintf("%d %c %d", a, op, b), strconv.Itoa(value(a, op, b)))
}

func value(a int, op byte, b int) int {
	switch op {
	case '+':
		return a + b
	case '-':
		return a - b
	}
	return a * b
}

// task makes the task of an expression.
func task(expression, answer string) env.Task {
	return env.Task{ID: identity(expression), Level: 1, Text: "What is " + expression + "?", Answer: answer,
		Spec: expression}
}

// identity is a digest: 16 hexadecimal digits.
func identity(expression string) string {
	sum := sha256.Sum256([]byte("sums\n" + expression))
	return hex.EncodeToString(sum[:8])
}

func isHeldOut(id string) bool {
	v, err := strconv.ParseUint(id, 16, 64)
	return err == nil && v%heldOutOf == 0
}

// read parses an expression and returns its task.
func read(expression string) (env.Task, error) {
	parts := strings.Split(expression, " ")
	if len(parts) != 3 || !slices.Contains([]string{"+", "-", "*"}, parts[1]) {
		return env.Task{}, fmt.Errorf("%.40q is no expression", expression)
	}
	a, errA := strconv.Atoi(parts[0])
	b, errB := strconv.Atoi(parts[2])
	if errA != nil || errB != nil || max(a, b) > 9999 || min(a, b) < 0 {
		return env.Task{}, fmt.Errorf("%.40q is no expression", expression)
	}
	return task(expression, strconv.Itoa(value(a, parts[1][0], b))), nil
}

// asked is an episode's state in JSON.
type asked struct {
	Expression string `json:"expression"`
	Ended      bool   `json:"ended,omitempty"`
}

// Instruction is empty, because the question says everything.
func (*Sums) Instruction(env.Task) (string, error) { return "", nil }

// Reset asks the question.
func (*Sums) Reset(ctx context.Context, of env.Task) (env.State, env.Observation, error) {
	if err := ctx.Err(); err != nil {
		return nil, env.Observation{}, err
	}
	t, err := read(of.Spec)
	if err == nil && t.ID != of.ID {
		err = fmt.Errorf("%.40q is not its expression", of.Spec)
	}
	if err != nil {
		return nil, env.Observation{}, fmt.Errorf("read problem %.40s: %w", of.ID, err)
	}
	state, err := json.Marshal(asked{Expression: t.Spec})
	return state, env.Seen(t.Text), err
}

// Step takes the answer and ends the episode. An answer that is not a whole number is invalid.
func (*Sums) Step(ctx context.Context, at env.State, action string) (env.State, env.Transition, error) {
	if err := ctx.Err(); err != nil {
		return nil, env.Transition{}, err
	}
	q, t, err := stateOf(at)
	if err != nil {
		return nil, env.Transition{}, err
	}
	if q.Ended {
		return nil, env.Transition{}, fmt.Errorf("answer a problem: %w", env.ErrEnded)
	}
	number, err := strconv.Atoi(strings.TrimSpace(action))
	done := env.Transition{Done: true, Valid: err == nil, Observation: env.Seen("wrong")}
	if done.Valid && strconv.Itoa(number) == t.Answer {
		done.Success, done.Reward, done.Observation = true, 1, env.Seen("right")
	}
	q.Ended = true
	state, err := json.Marshal(q)
	return state, done, err
}

// Situation identifies the state. An episode has one turn.
func (*Sums) Situation(at env.State) (string, error) {
	q, _, err := stateOf(at)
	return fmt.Sprintf("%s %t", q.Expression, q.Ended), err
}

func stateOf(at env.State) (q asked, t env.Task, err error) {
	if err = json.Unmarshal(at, &q); err == nil {
		t, err = read(q.Expression)
	}
	if err != nil {
		err = fmt.Errorf("read the state of a problem: %w", err)
	}
	return q, t, err
}
