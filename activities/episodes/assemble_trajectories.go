package episodes

import (
	"context"

	"github.com/ropewalk/ropewalk/activities/record"
	"github.com/ropewalk/ropewalk/activities/resource"
	"github.com/ropewalk/ropewalk/activities/stage"
	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/rollout"
	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/ropewalk/ropewalk/schema"
)

// AssembleTrajectories joins one shard's turns and tool results into episodes.
type AssembleTrajectories struct{ *stage.Worker }

// Execute commits one row for each episode.
func (a AssembleTrajectories) Execute(ctx context.Context, e *stage.Env, in api.AssembleInput) (out api.Done,
	err error) {
	inputs := append([]schema.Ref{in.Prompts}, in.Inputs()...)
	s := stage.Spec{Scope: in.Scope, Stage: schema.StageAssemble, Turn: -1, Shard: in.Shard, Inputs: inputs}
	err = stage.Execute(ctx, a.Worker, e, s, &out, func(ctx context.Context, w *stage.Draft) error {
		build := a.sampled
		if w.Recipe.Environment.Imported() {
			build = a.Imported
		}
		rows, err := build(ctx, in, w.Recipe)
		if err != nil {
			return err
		}
		w.Timing.Rows = int64(len(rows))
		return stage.Put(ctx, w, rows)
	})
	return out, err
}

func (a AssembleTrajectories) sampled(ctx context.Context, in api.AssembleInput,
	recipe *recipes.Recipe) ([]schema.TrajectoryRow, error) {
	_, episodes, err := AsOf(ctx, a.Worker, recipe, in.Shard, in.Prompts, in.Past)
	if err != nil {
		return nil, err
	}
	leaves := rollout.Leaves(episodes)
	rows := make([]schema.TrajectoryRow, len(leaves))
	for i, e := range leaves {
		rows[i] = rollout.TrajectoryRow(e)
	}
	box, err := a.Execution.Toolbox(recipe, a.Execution.Notebooks)
	if err != nil {
		return nil, err
	}
	resource.EndCalls(ctx, box, in.Scope, episodes, nil)
	return rows, nil
}

// Imported takes the importer's trajectories and counts which of their calls failed.
func (a AssembleTrajectories) Imported(ctx context.Context, in api.AssembleInput,
	_ *recipes.Recipe) ([]schema.TrajectoryRow, error) {
	manifests, err := a.Behind(ctx, in.Past, nil)
	if err != nil {
		return nil, err
	}
	rows, err := importedTrajectories(ctx, a.Worker.Records, manifests)
	if err != nil {
		return nil, err
	}
	calls, err := commit.Rows[schema.ToolCallRow](ctx, a.Record, record.OfStage(manifests, schema.StageSandbox)...)
	if err != nil {
		return nil, err
	}
	failed := map[string]int32{}
	for _, c := range calls {
		if sandbox.Status(c.Status).Failed() {
			failed[c.TrajectoryID]++
		}
	}
	for i := range rows {
		rows[i].ToolErrors = failed[rows[i].TrajectoryID]
	}
	return rows, nil
}
