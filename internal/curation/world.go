package curation

import (
	"context"
	"math/rand/v2"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/internal/dataset"
)

// World is an environment whose training tasks are the kept ones. Its held-out tasks are those of the environment.
type World struct {
	env.Environment
	kept  []env.Task
	order *dataset.Order
}

// NewWorld returns an environment with these training tasks, of which there is at least one.
func NewWorld(of env.Environment, kept []env.Task) *World {
	return &World{Environment: of, kept: kept, order: dataset.NewOrder("kept tasks", len(kept))}
}

// Task returns a kept task in a seeded order, in which each comes once before any repeats; or a held-out task.
func (w *World) Task(ctx context.Context, at env.Draw) (env.Task, error) {
	if at.Split != env.Train {
		return w.Environment.Task(ctx, at)
	}
	return w.kept[w.order.At(at.Seed, at.Place())], ctx.Err()
}

// Teacher demonstrates kept tasks alone, so that a policy is not cloned on questions of an evaluation set.
type Teacher struct {
	env.Teacher
	Kept []env.Task // at least one
}

// Draw draws a kept task of any level.
func (t Teacher) Draw(rng *rand.Rand, _ env.Lesson) (env.Task, error) {
	return t.Kept[rng.IntN(len(t.Kept))], nil
}

// Right reports whether an answer is right, by the environment's own comparison if it has one.
func (t Teacher) Right(task env.Task, answer string) bool {
	if m, ok := t.Teacher.(env.Marker); ok {
		return m.Right(task, answer)
	}
	return answer == task.Answer
}
