package activities

import (
	"context"

	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/schema"
)

// EvaluateShard runs the episodes of some held-out problems of a large evaluation. A killed worker loses at most the
// shards that it was running.
type EvaluateShard struct{ *Deps }

// Execute commits the shard's rows. Its episodes are those that one activity for the whole evaluation would run.
func (a EvaluateShard) Execute(ctx context.Context, e *Env, in api.EvaluateShardInput) (api.EvaluatedShard, error) {
	out := api.EvaluatedShard{}
	s := spec{scope: in.Scope, stage: schema.StageEvaluate, turn: -1, shard: in.Shard,
		inputs: []schema.Ref{in.Policy.Manifest}}
	err := execute(ctx, a.Deps, e, s, &out, &out.Done, func(ctx context.Context, w *draft) error {
		recipe, err := a.Recipes.recipe(ctx, in.Scope)
		if err != nil {
			return err
		}
		found, err := a.measure(ctx, w, in.EvaluateInput, recipe, in.First, in.Problems)
		if err != nil {
			return err
		}
		out.Episodes = len(found.rows)
		if found.excluded > 0 {
			w.stats = map[string]float64{schema.StatExcluded: float64(found.excluded)}
		}
		for _, r := range found.rows {
			w.timing.Tokens += int64(*r.ResponseTokens)
			if r.Greedy {
				continue
			}
			out.Sampled++
			if r.Success {
				out.Solved++
			}
		}
		w.timing.Rows = int64(len(found.rows))
		return found.put(ctx, w, recipe)
	})
	return out, err
}
