package workflows

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"github.com/ropewalk/ropewalk/activities/api"
	"github.com/ropewalk/ropewalk/schema"
)

// episodes fakes RunEpisodes and lists its inputs.
func (f *fakes) episodes(fails func(api.EpisodesInput) error) *[]api.EpisodesInput {
	asked := &[]api.EpisodesInput{}
	handle(f, api.RunEpisodes, func(in api.EpisodesInput) (api.Episodes, error) {
		f.mu.Lock()
		defer f.mu.Unlock()
		*asked = append(*asked, in)
		if err := fails(in); err != nil {
			return api.Episodes{}, err
		}
		scored, err := f.score(api.ScoreInput{Scope: in.Scope, Shard: in.Shard})
		return api.Episodes{Assembled: ref("assembled", in.Step, in.Shard), Scored: scored,
			Timings: []api.Timing{{Stage: api.StageRollout, Start: 1, End: 2}}}, err
	})
	handle(f, api.CommitStages, func(in api.CommitInput) (api.Committed, error) {
		return committed(in, f.plan, func(stage string, i int) schema.Ref { return ref(stage, in.Step, i) }), nil
	})
	return asked
}

// However many shards and turns there are, each shard is one activity.
func TestAShardOfEpisodesIsOneActivity(t *testing.T) {
	f := newFakes(t, api.Plan{Recipe: "r", Steps: 1, Shards: 70, MaxTurns: 50, Interleaved: true})
	ids, _ := startedShards(f)
	asked := f.episodes(func(api.EpisodesInput) error { return nil })
	f.env.ExecuteWorkflow(TrainRun, TrainRunInput{Run: "run-1", Recipe: "quickstart"})
	require.NoError(t, f.env.GetWorkflowError())
	require.Len(t, *asked, 70)
	require.Empty(t, *ids)
	require.Zero(t, f.calls[api.GenerateRollouts]+f.calls[api.ExecuteToolCalls]+f.calls[api.ScoreRewards])
	require.Equal(t, 50, (*asked)[0].MaxTurns)
	require.Equal(t, 4*70, progressOf(t, f).Lines[0].Trajectories)
}

// A run that parks names the stage within the activity, and a retry's time limit is that stage's.
func TestAFailedPartOfEpisodesParksTheRun(t *testing.T) {
	f := newFakes(t, api.Plan{Recipe: "r", Steps: 1, Shards: 2, MaxTurns: 3, Interleaved: true})
	left := 1
	asked := f.episodes(func(in api.EpisodesInput) error {
		if in.Shard != 1 || left == 0 {
			return nil
		}
		left--
		return temporal.NewApplicationErrorWithOptions("no room on the device", "disk_full",
			temporal.ApplicationErrorOptions{NonRetryable: true, Details: []any{api.FailedPart{Stage: api.StageSandbox,
				Turn: 2, Activity: api.ExecuteToolCalls}}})
	})
	var parked Progress
	f.env.RegisterDelayedCallback(func() { parked = progressOf(t, f) }, time.Minute)
	f.after(time.Hour, UpdateRetry, RetryInput{TimeoutSeconds: 99})
	f.env.ExecuteWorkflow(TrainRun, TrainRunInput{Run: "run-1", Recipe: "quickstart"})
	require.NoError(t, f.env.GetWorkflowError())
	require.Equal(t, []StageFailure{{
		Stage: api.StageSandbox, Shard: 1, Turn: 2, Activity: api.ExecuteToolCalls, Kind: "disk_full",
		Text: "ExecuteToolCalls: no room on the device",
	}}, parked.Parked.Failures)
	last := (*asked)[len(*asked)-1]
	require.Equal(t, map[string]float64{api.ExecuteToolCalls: 99}, last.Timeouts)
}
