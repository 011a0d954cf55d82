package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/ropewalk/ropewalk/activities"
	"github.com/ropewalk/ropewalk/gpu/gang"
	"github.com/ropewalk/ropewalk/gpu/leased"
	"github.com/ropewalk/ropewalk/gpu/plan"
	"github.com/ropewalk/ropewalk/recipes"
)

// plannedEngine is what a recipe's engine would be on this machine. A worker elsewhere may choose otherwise.
type plannedEngine struct {
	Kind string `json:"kind"`
	Why  string `json:"why,omitempty"`
	// Memory is what an update takes of each GPU, by estimate; nil where the model's sizes are not known here.
	Memory *plan.Memory `json:"memory,omitempty"`
	// WarmStart is what the warm start takes where an adapter trains afterwards; nil where it takes no more than an update.
	WarmStart *plan.Memory `json:"warm_start_memory,omitempty"`
	// Refused says why no worker on this machine could run the recipe.
	Refused string `json:"refused,omitempty"`
}

func (e plannedEngine) String() string {
	text := e.Kind
	if e.Why != "" {
		text += ": " + e.Why
	}
	if e.Refused != "" {
		text += ": cannot run here: " + e.Refused
	}
	if e.Memory != nil {
		text += fmt.Sprintf("\nmemory on GPUs, by estimate: an update takes %s", e.Memory)
	}
	if e.WarmStart != nil {
		text += fmt.Sprintf("; the warm start, which trains all of the model, %s", e.WarmStart)
	}
	return text
}

// engineHere settles a recipe's engine as a worker on this machine would.
func engineHere(ctx context.Context, r *recipes.Recipe) (plannedEngine, error) {
	out := plannedEngine{Kind: r.Engine.Kind}
	if r.Engine.Kind == recipes.EngineCPU || r.Environment.Imported() {
		return out, nil
	}
	if r.Policy.Checkpoint == "" {
		model, err := modelOf(r)
		if err != nil {
			return out, err
		}
		memory := updateMemory(r, model, batchTokens(r))
		out.Memory = &memory
		if whole := r.WithoutAdapter(); whole != r {
			warm := updateMemory(whole, model, batchTokens(r))
			out.WarmStart = &warm
		}
	}
	m, err := leased.Open(leased.Options{Python: (&foundPython{}).path, Logger: slog.Default(), Gangs: plannedGangs()})
	if err != nil {
		return out, err
	}
	defer m.Close()
	kind, why, err := activities.ChooseEngine(ctx, r, torchEngines{m})
	if err != nil {
		out.Refused = err.Error()
		return out, nil
	}
	out.Kind, out.Why = kind, why
	return out, nil
}

// plannedGangs stand for those of a worker, which can bring other hosts; here nobody is brought.
func plannedGangs() leased.Gangs {
	return leased.Gangs{Summon: func(context.Context, gang.Invitation, int) (func(), error) {
		return nil, errors.New("no worker runs here")
	}}
}
