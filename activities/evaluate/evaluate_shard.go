package evaluate

import (
	"context"

	"github.com/ropewalk/ropewalk/activities/stage"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/schema"
)

// EvaluateShard runs the episodes of some held-out problems of a large evaluation. A killed worker loses at most the
// shards that it was running.
type EvaluateShard struct{ *stage.Worker }

// Execute commits the shard's rows. Its episodes are those that one activity for the whole evaluation would run.
func (a EvaluateShard) Execute(ctx context.Context, e *stage.Env, in api.EvaluateShardInput) (out api.EvaluatedShard,
	err error) {
	s := stage.Spec{Scope: in.Scope, Stage: schema.StageEvaluate, Turn: -1, Shard: in.Shard,
		Inputs: []schema.Ref{in.Policy.Manifest}}
	err = stage.Execute(ctx, a.Worker, e, s, &out, func(ctx context.Context, w *stage.Draft) error {
		found, err := measure(ctx, w, in.EvaluateInput, in.First, in.Problems)
		if err != nil {
			return err
		}
		out.Episodes = len(found.rows)
		if found.excluded > 0 {
			w.Stats = map[string]float64{schema.StatExcluded: float64(found.excluded)}
		}
		for _, r := range found.rows {
			w.Timing.Tokens += int64(*r.ResponseTokens)
			if r.Greedy {
				continue
			}
			out.Sampled++
			if r.Success {
				out.Solved++
			}
		}
		w.Timing.Rows = int64(len(found.rows))
		return found.put(ctx, w)
	})
	return out, err
}
