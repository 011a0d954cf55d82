package curation

import (
	"context"

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
