package workflows

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/schema"
)

// finishes fakes UpdateAndPublish and lists its inputs.
func (f *fakes) finishes(fails func(api.FinishInput) error) *[]api.FinishInput {
	asked := &[]api.FinishInput{}
	var mu sync.Mutex
	handle(f, api.UpdateAndPublish, func(in api.FinishInput) (out api.Finished, err error) {
		mu.Lock()
		defer mu.Unlock()
		*asked = append(*asked, in)
		if err := fails(in); err != nil {
			return out, err
		}
		out.Updated, err = f.update(in.UpdateInput)
		out.Timings = []api.Timing{{Stage: schema.StagePublish, Start: 1, End: 3_000_001}}
		return out, err
	})
	return asked
}

// An interleaved step updates and publishes in one activity, unless an evaluation runs alongside, for which the
// publication waits. The heads name the same stages in the same order either way.
func TestOneActivityUpdatesAndPublishes(t *testing.T) {
	headsOf := func(finish bool) ([][]string, *fakes) {
		plan := apart(3, 0)
		plan.Interleaved, plan.Finish = true, finish
		f := newFakes(t, plan)
		f.episodes(func(api.EpisodesInput) error { return nil })
		asked := f.finishes(func(api.FinishInput) error { return nil })
		heads := f.heads()
		f.env.ExecuteWorkflow(TrainRun, TrainRunInput{Run: "run-1", Recipe: "quickstart"})
		require.NoError(t, f.env.GetWorkflowError())
		var names [][]string
		for _, head := range *heads {
			names = append(names, stageNames(head))
		}
		for _, in := range *asked {
			names = append(names, append(stageNames(in.Stages), schema.StageUpdate))
		}
		return names, f
	}
	want, f := headsOf(false)
	require.Len(t, want, 3)
	require.Zero(t, f.calls[api.UpdateAndPublish])
	got, f := headsOf(true)
	require.Equal(t, want, got)
	require.Equal(t, 1, f.calls[api.UpdatePolicy], "the policy after the warm start is measured alongside step 1")
	require.Equal(t, 1, f.calls[api.PublishPolicy])
	require.Equal(t, 2, f.calls[api.UpdateAndPublish])
	require.InDelta(t, 3, progressOf(t, f).Lines[1].StageSeconds[schema.StagePublish], 1e-9)
}

// A run that parks because a policy was not published says so, and the activity is asked again with the person's limit.
func TestAFailedPublicationParksTheRun(t *testing.T) {
	f := newFakes(t, api.Plan{Recipe: "r", Steps: 1, Shards: 1, MaxTurns: 1, Interleaved: true, Finish: true})
	f.episodes(func(api.EpisodesInput) error { return nil })
	failed := false
	asked := f.finishes(func(api.FinishInput) error {
		if failed {
			return nil
		}
		failed = true
		return temporal.NewApplicationErrorWithOptions("no room", "disk_full",
			temporal.ApplicationErrorOptions{NonRetryable: true, Details: []any{api.FailedPart{
				Stage: schema.StagePublish, Turn: -1, Activity: api.PublishPolicy}}})
	})
	var parked Progress
	f.env.RegisterDelayedCallback(func() { parked = progressOf(t, f) }, time.Minute)
	f.after(time.Hour, UpdateRetry, RetryInput{TimeoutSeconds: 99})
	f.env.ExecuteWorkflow(TrainRun, TrainRunInput{Run: "run-1", Recipe: "quickstart"})
	require.NoError(t, f.env.GetWorkflowError())
	require.Equal(t, []StageFailure{{Stage: schema.StagePublish, Shard: -1, Turn: -1, Activity: api.PublishPolicy,
		Kind: "disk_full", Text: "PublishPolicy: no room"}}, parked.Parked.Failures)
	require.Equal(t, map[string]float64{api.PublishPolicy: 99}, (*asked)[1].Timeouts)
}
