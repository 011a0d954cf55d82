package verdict

import (
	"context"

	"github.com/ropewalk/ropewalk/activities/record"
	"github.com/ropewalk/ropewalk/activities/stage"
	"github.com/ropewalk/ropewalk/internal/grading"
	"github.com/ropewalk/ropewalk/schema"
)

// grader makes what grades a shard's trajectories. In an interactive environment it knows what their actions led to,
// and the manifests that say so become inputs.
func grader(ctx context.Context, w *stage.Draft, step int, trajectories schema.Ref) (*grading.Grader, error) {
	g := grading.New(w.Recipe, step)
	if !w.Recipe.Environment.Declaration().Interactive {
		return g, nil
	}
	transitions, made, err := w.Worker.Records.Transitions(ctx, trajectories)
	if err != nil {
		return nil, err
	}
	g.Played = grading.Played(transitions)
	w.Manifest.Inputs = append(w.Manifest.Inputs, made...)
	return g, nil
}

// problems returns the problem of each group.
func problems(ctx context.Context, r record.Records, prompts schema.Ref) (map[string]string, error) {
	rows, err := record.Read[schema.PromptRow](ctx, r, prompts)
	if err != nil {
		return nil, err
	}
	out := make(map[string]string, len(rows))
	for _, p := range rows {
		out[p.GroupID] = p.Problem
	}
	return out, nil
}
