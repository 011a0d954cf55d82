package remote

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/internal/dataset"
	"github.com/ropewalk/ropewalk/internal/seed"
)

// taskCount is how many tasks the other side says it has, once it was asked.
type taskCount struct {
	mu             sync.Mutex
	train, heldOut int
	order          *dataset.Order // of training tasks
}

// counted reports whether the other side says how many tasks it has. Seeds count within a split then.
func (e *environment) counted() bool { return e.Train == 0 }

// count returns the numbers of training tasks and of held-out ones.
func (e *environment) count(ctx context.Context) (train, heldOut int, err error) {
	if !e.counted() {
		return e.Train, e.HeldOut, nil
	}
	c := &e.said
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.order == nil {
		port, ok := e.port.(counter)
		if !ok {
			return 0, 0, errors.New("tasks: must be at least 1")
		}
		if c.train, c.heldOut, err = port.Count(ctx); err != nil {
			return 0, 0, fmt.Errorf("tasks: %w", err)
		}
		c.order = dataset.NewOrder("remote tasks", c.train)
	}
	return c.train, c.heldOut, nil
}

// Task draws a seed. It asks no one, so tasks can be drawn without the other side, unless that says how many tasks it
// has: then each training task comes once before any repeats.
func (e *environment) Task(ctx context.Context, at env.Draw) (env.Task, error) {
	heldOut, err := at.Split.HeldOut()
	if err != nil {
		return env.Task{}, fmt.Errorf("draw a task of environment %s: %w", e.Settings.Name, err)
	}
	train, held, err := e.count(ctx)
	if err != nil {
		return env.Task{}, err
	}
	var o opening
	switch {
	case e.counted() && heldOut:
		o = opening{at.Place() % held, at.Split}
	case e.counted():
		o = e.training(e.said.order.At(at.Seed, at.Place()))
	case heldOut:
		o.Seed = train + at.Place()%held
	default:
		o = e.training(seed.Rand("remote task", at.Seed, uint64(at.Step), uint64(at.Index)).IntN(train))
	}
	spec, err := json.Marshal(o)
	sum := sha256.Sum256([]byte(e.Identity + "\n" + strings.TrimSpace(fmt.Sprint(o.Split, " ", o.Seed))))
	return env.Task{ID: hex.EncodeToString(sum[:16]), Level: 1, Spec: string(spec)}, err
}

// training is the beginning of a training task.
func (e *environment) training(n int) opening {
	if e.counted() {
		return opening{n, env.Train}
	}
	return opening{Seed: n}
}

// openingOf reads the beginning of a task's episodes.
func (e *environment) openingOf(task env.Task) (opening, error) {
	var spec struct {
		Seed  *int      `json:"seed"`
		Split env.Split `json:"split"`
	}
	if err := json.Unmarshal([]byte(task.Spec), &spec); err != nil || spec.Seed == nil || *spec.Seed < 0 {
		return opening{}, fmt.Errorf("task %s is not one of environment %s: %q has no seed", task.ID, e.Settings.Name,
			task.Spec)
	}
	return opening{*spec.Seed, spec.Split}, nil
}

// Classify implements env.Classifier.
func (e *environment) Classify(task env.Task, state env.State) (env.Task, error) {
	h, err := historyOf(state)
	if h.Type != "" {
		task.Type = h.Type
	}
	if h.Level > 0 {
		task.Level = h.Level
	}
	return task, err
}

// Score implements env.Scorer.
func (e *environment) Score(state env.State) (*float64, error) {
	h, err := historyOf(state)
	return h.Score, err
}
