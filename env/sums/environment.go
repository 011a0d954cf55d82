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
	env.Questions
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
	heldOut, err := at.Split.HeldOut()
	if err != nil {
		return env.Task{}, fmt.Errorf("draw a problem: %w", err)
	}
	if heldOut {
		return s.heldOutTask(at.Index)
	}
	rng := seed.Rand("sums training", at.Seed, uint64(at.Place()))
	for range drawTries {
		if t := s.draw(rng); !isHeldOut(t.ID) {
			return t, nil
		}
	}
	return env.Task{}, fmt.Errorf("draw a problem: the settings leave no problem to train on")
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

// goldOf reads the gold of a task.
func goldOf(task env.Task) (string, error) {
	t, err := read(task.Spec)
	if err == nil && t.ID != task.ID {
		err = fmt.Errorf("%.40q is not its expression", task.Spec)
	}
	return t.Answer, err
}
