package activities

import (
	"context"

	"github.com/ropewalk/ropewalk/internal/grading"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/schema"
)

// grader makes what grades a shard's trajectories. In an interactive environment it knows what their actions led to,
// and the manifests that say so become inputs.
func (r records) grader(ctx context.Context, w *draft, recipe *recipes.Recipe, step int,
	trajectories schema.Ref) (*grading.Grader, error) {
	g := grading.New(recipe, step)
	if !recipe.Environment.Declaration().Interactive {
		return g, nil
	}
	transitions, made, err := r.transitions(ctx, trajectories)
	if err != nil {
		return nil, err
	}
	g.Played = grading.Played(transitions)
	w.manifest.Inputs = append(w.manifest.Inputs, made...)
	return g, nil
}

// problems returns the problem of each group.
func (r records) problems(ctx context.Context, prompts schema.Ref) (map[string]string, error) {
	rows, err := read[schema.PromptRow](ctx, r, prompts)
	if err != nil {
		return nil, err
	}
	out := make(map[string]string, len(rows))
	for _, p := range rows {
		out[p.GroupID] = p.Problem
	}
	return out, nil
}
