package activities

import (
	"context"

	"github.com/ropewalk/ropewalk/internal/grading"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/schema"
)

// CallFunction calls the user's reward function with the trajectories of one shard. The reward reads the committed
// results, so replays need no Python.
type CallFunction struct{ *Deps }

// Execute commits one row for each trajectory that is not excluded. A call that raises, hangs or returns no finite
// number excludes its trajectory. If all calls break, the stage fails and can be tried again.
func (a CallFunction) Execute(ctx context.Context, in api.FunctionInput) (api.Called, error) {
	out := api.Called{}
	s := spec{scope: in.Scope, stage: api.StageFunction, turn: -1, shard: in.Shard,
		inputs: []schema.Ref{in.Trajectories, in.Prompts}}
	err := execute(ctx, a.Deps, s, &out, &out.Done, func(ctx context.Context, w *draft) error {
		recipe, err := a.recipe(ctx, in.Scope)
		if err != nil {
			return err
		}
		trajectories, err := read[schema.TrajectoryRow](ctx, a.records, in.Trajectories)
		if err != nil {
			return err
		}
		problems, err := a.problems(ctx, in.Prompts)
		if err != nil {
			return err
		}
		g, err := a.grader(ctx, w, recipe, in.Step, in.Trajectories)
		if err != nil {
			return err
		}
		rows, err := a.called(ctx, w, in.Scope, recipe, g, trajectories, problems)
		if err != nil {
			return err
		}
		out.Edited = w.edited
		for _, r := range rows {
			if r.Excluded != nil {
				out.Excluded++
			} else {
				out.Scored++
			}
		}
		w.timing.Rows = int64(len(rows))
		return put(ctx, w, rows)
	})
	return out, err
}

// called calls the function, returns its results and notes its code. It takes over results that the shard's verifier
// has.
func (d *Deps) called(ctx context.Context, w *draft, scope api.Scope, recipe *recipes.Recipe, g *grading.Grader,
	trajectories []schema.TrajectoryRow, problems map[string]string) ([]schema.FunctionScoreRow, error) {
	f, err := g.Function()
	if err != nil {
		return nil, err
	}
	settings := recipes.FunctionSettings(f)
	if field, text := settings.Fault(); text != "" {
		return nil, refuse(api.FailBadInput, "reward.%s: %s", field, text)
	}
	if f.Module == "" {
		return nil, refuse(api.FailBadInput, "reward.module: recipe %s names no function", recipe.Name)
	}
	rows, arguments := g.Arguments(trajectories, problems, f.Module)
	if len(rows) == 0 {
		return rows, nil
	}
	early, began, err := verifierOf(ctx).scored(ctx, rows, arguments)
	if err != nil {
		return nil, err
	}
	w.since(began)
	for i, r := range early {
		grading.FillResult(&rows[i], r.Score, r.Success, nil)
	}
	left := leftToScore(len(rows), early)
	open := make([]map[string]any, len(left))
	for i, at := range left {
		open[i] = arguments[at]
	}
	results, err := d.functions.Score(ctx, settings, open, w.progress.set)
	if err != nil {
		return nil, err
	}
	for i, r := range results {
		if _, has := early[left[i]]; !has {
			grading.FillResult(&rows[left[i]], r.Score, r.Success, r.Broken)
		}
	}
	files, err := d.functions.Code(ctx, settings)
	if err != nil {
		return nil, err
	}
	return rows, w.noteCode(ctx, scope, schema.NoteRewardCode, files)
}
