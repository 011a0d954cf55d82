package workflows

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"

	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/schema"
)

// An evaluation with shards runs each of them once and then combines them in their order. A shard that fails for good
// parks the run, and a retry runs it again.
func TestAnEvaluationRunsItsShards(t *testing.T) {
	f := newFakes(t, api.Plan{Recipe: "r", Steps: 3})
	f.env.SetWorkerOptions(worker.Options{DeadlockDetectionTimeout: time.Minute}) // a busy machine is no deadlock
	policy := api.PolicyRef{Digest: "p", Manifest: ref("update")}
	handle(f, api.PrepareRun, func(in api.PrepareInput) (api.Prepared, error) {
		return api.Prepared{Done: api.Done{Manifest: ref("config")}, Plan: f.plan, Evaluates: &policy,
			Evaluation: &api.EvaluationPlan{Problems: 23, PerShard: 2, Positions: 99}}, nil
	})
	var mu sync.Mutex
	asked, broken := map[int]int{}, true
	handle(f, api.EvaluateShard, func(in api.EvaluateShardInput) (api.EvaluatedShard, error) {
		mu.Lock()
		defer mu.Unlock()
		if in.Shard == 5 && broken {
			return api.EvaluatedShard{}, temporal.NewNonRetryableApplicationError("no room", api.FailRefused, nil)
		}
		asked[in.Shard]++
		require.Equal(t, 2*in.Shard, in.First)
		require.Equal(t, min(2, 23-in.First), in.Problems)
		require.Equal(t, 99, in.Positions)
		return api.EvaluatedShard{Done: api.Done{Manifest: ref("shard", in.Shard)}, Sampled: 4, Solved: 1}, nil
	})
	handle(f, api.Evaluate, func(in api.EvaluateInput) (api.Evaluated, error) {
		var want []schema.Ref
		for i := range 12 {
			want = append(want, ref("shard", i))
		}
		require.Equal(t, want, in.Parts)
		return api.Evaluated{Summary: api.EvaluationSummary{Rate: api.Rate{Success: 0.25, N: 23}}}, nil
	})
	f.env.RegisterDelayedCallback(func() {
		var p Progress
		value, err := f.env.QueryWorkflow(QueryProgress)
		require.NoError(t, err)
		require.NoError(t, value.Get(&p))
		require.Equal(t, 5, p.Parked.Failures[0].Shard)
		require.Contains(t, p.Evaluating.String(), "of 12 shards, success so far 25.0%")
		broken = false
		f.env.UpdateWorkflow(UpdateRetry, "retry", &updateResult{}, RetryInput{})
	}, time.Hour)
	f.env.ExecuteWorkflow(EvaluateRunName, EvaluateInput{Run: "e", RecipeYAML: "x", Policy: policy})
	require.NoError(t, f.env.GetWorkflowError())
	var out EvaluateRunResult
	require.NoError(t, f.env.GetWorkflowResult(&out))
	require.Equal(t, 0.25, out.Summary.Success)
	require.Len(t, asked, 12)
	require.Equal(t, 1, f.calls[api.Evaluate])
}
