package activities

import (
	"context"

	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/rollout"
	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/ropewalk/ropewalk/schema"
)

// AssembleTrajectories joins one shard's turns and tool results into episodes.
type AssembleTrajectories struct{ *Deps }

// Execute commits one row for each episode.
func (a AssembleTrajectories) Execute(ctx context.Context, e *Env, in api.AssembleInput) (api.Done, error) {
	out := api.Done{}
	inputs := append([]schema.Ref{in.Prompts}, in.Inputs()...)
	s := spec{scope: in.Scope, stage: schema.StageAssemble, turn: -1, shard: in.Shard, inputs: inputs}
	err := execute(ctx, a.Deps, e, s, &out, &out, func(ctx context.Context, w *draft) error {
		recipe, err := a.Recipes.recipe(ctx, in.Scope)
		if err != nil {
			return err
		}
		build := a.sampled
		if recipe.Environment.Imported() {
			build = a.imported
		}
		rows, err := build(ctx, in, recipe)
		if err != nil {
			return err
		}
		w.timing.Rows = int64(len(rows))
		return put(ctx, w, rows)
	})
	return out, err
}

func (a AssembleTrajectories) sampled(ctx context.Context, in api.AssembleInput,
	recipe *recipes.Recipe) ([]schema.TrajectoryRow, error) {
	_, episodes, err := a.episodes(ctx, recipe, in.Shard, in.Prompts, in.Past)
	if err != nil {
		return nil, err
	}
	leaves := rollout.Leaves(episodes)
	rows := make([]schema.TrajectoryRow, len(leaves))
	for i, e := range leaves {
		rows[i] = rollout.TrajectoryRow(e)
	}
	box, err := a.Execution.toolbox(recipe, a.Execution.Notebooks)
	if err != nil {
		return nil, err
	}
	endCalls(ctx, box, in.Scope, episodes, nil)
	return rows, nil
}

// imported takes the importer's trajectories and counts which of their calls failed.
func (a AssembleTrajectories) imported(ctx context.Context, in api.AssembleInput,
	_ *recipes.Recipe) ([]schema.TrajectoryRow, error) {
	manifests, err := a.behind(ctx, in.Past, nil)
	if err != nil {
		return nil, err
	}
	rows, err := a.importedTrajectories(ctx, manifests)
	if err != nil {
		return nil, err
	}
	calls, err := commit.Rows[schema.ToolCallRow](ctx, a.Record, ofStage(manifests, schema.StageSandbox)...)
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
