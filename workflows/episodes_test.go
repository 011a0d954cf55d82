package workflows

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/schema/stages"
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
		return api.Episodes{Shard: in.Shard, Assembled: ref("assembled", in.Step, in.Shard), Scored: scored,
			Spent: api.Spent{Timings: []api.Timing{{Stage: schema.StageRollout, Start: 1, End: 2}}}}, err
	})
	handle(f, api.CommitStages, func(in api.CommitInput) (api.Committed, error) {
		return committed(in, f.plan, func(stage string, i int) schema.Ref { return ref(stage, in.Step, i) }), nil
	})
	f.together(func(api.BatchInput) error { return nil })
	return asked
}

// together fakes MakeBatch and lists its inputs.
func (f *fakes) together(fails func(api.BatchInput) error) *[]api.BatchInput {
	asked := &[]api.BatchInput{}
	handle(f, api.MakeBatch, func(in api.BatchInput) (out api.Batch, err error) {
		*asked = append(*asked, in)
		if err := fails(in); err != nil {
			return out, err
		}
		for _, stage := range in.Stages {
			switch stage {
			case stages.Commit:
				out.Made = committed(*in.Commit, f.plan, func(stage string, i int) schema.Ref {
					return ref(stage, in.Step, i)
				}).Stages
				continue
			case schema.StageResample:
				out.Resampled, err = f.resample(api.StageInput{Scope: in.Scope})
			case schema.StageAdvantage:
				out.Batch = api.Advantages{Done: api.Done{Manifest: ref("batch", in.Step)}, Rows: 6}
			case schema.StageBuffer:
				out.Buffered, err = f.buffer(api.StageInput{Scope: in.Scope})
			}
			out.Made = append(out.Made, api.StageRef{Stage: stage, Ref: out.Of(stage).Common().Manifest})
		}
		out.Timings = []api.Timing{{Stage: schema.StageAdvantage, Start: 1, End: 2_000_001}}
		return out, err
	})
	return asked
}

// An interleaved step has one activity between its rollout and its update, or two with the models' stage between them.
// Its head names the same stages in the same order as that of a staged step.
func TestOneActivityMakesTheBatch(t *testing.T) {
	for name, needs := range map[string]stages.Needs{
		"plain": {}, "buffer": {ReplayBuffer: true}, "models": {Logprobs: true},
		"both": {ReplayBuffer: true, Logprobs: true},
	} {
		t.Run(name, func(t *testing.T) {
			headsOf := func(interleaved bool) ([]api.StageRef, *fakes, []api.BatchInput) {
				f := newFakes(t, api.Plan{Recipe: "r", Steps: 1, Shards: 2, MaxTurns: 1, Interleaved: interleaved,
					Needs: needs})
				f.episodes(func(api.EpisodesInput) error { return nil })
				asked := f.together(func(api.BatchInput) error { return nil })
				f.logprobs()
				f.buffers()
				heads := f.heads()
				f.env.ExecuteWorkflow(TrainRun, TrainRunInput{Run: "run-1", Recipe: "quickstart"})
				require.NoError(t, f.env.GetWorkflowError())
				require.Len(t, *heads, 1)
				return (*heads)[0], f, *asked
			}
			staged, _, none := headsOf(false)
			require.Empty(t, none)
			together, f, asked := headsOf(true)
			// The fake of RunEpisodes makes no calls.
			called := func(stage string) bool { return stage == schema.StageSandbox }
			require.Equal(t, slices.DeleteFunc(stageNames(staged), called), stageNames(together))
			require.Zero(t, f.calls[api.Resample]+f.calls[api.ComputeAdvantages]+f.calls[api.UpdateReplayBuffer])
			require.InDelta(t, 2, progressOf(t, f).Lines[0].StageSeconds[schema.StageAdvantage], 1e-9)
			require.Len(t, asked[0].Commit.Rewards, 2)
			if !needs.Logprobs {
				require.Len(t, asked, 1)
				return
			}
			require.Len(t, asked, 2)
			require.Equal(t, []string{stages.Commit, schema.StageResample}, asked[0].Stages)
			second := asked[1]
			require.Equal(t, schema.StageAdvantage, second.Stages[0])
			require.Nil(t, second.Commit)
			for _, stage := range []string{schema.StageRollout, schema.StageReward, schema.StageResample,
				schema.StageLogprobs} {
				require.NotZero(t, second.Made.One(stage), stage)
			}
		})
	}
}

// A run that parks in that activity names the stage within it.
func TestAFailedPartOfTheBatchParksTheRun(t *testing.T) {
	f := newFakes(t, api.Plan{Recipe: "r", Steps: 1, Shards: 1, MaxTurns: 1, Interleaved: true})
	f.episodes(func(api.EpisodesInput) error { return nil })
	left := 1
	asked := f.together(func(api.BatchInput) error {
		if left--; left < 0 {
			return nil
		}
		return temporal.NewApplicationErrorWithOptions("no room", "disk_full",
			temporal.ApplicationErrorOptions{NonRetryable: true, Details: []any{api.FailedPart{
				Stage: schema.StageAdvantage, Turn: -1, Activity: api.ComputeAdvantages}}})
	})
	var parked Progress
	f.env.RegisterDelayedCallback(func() { parked = progressOf(t, f) }, time.Minute)
	f.after(time.Hour, UpdateRetry, RetryInput{TimeoutSeconds: 99})
	f.env.ExecuteWorkflow(TrainRun, TrainRunInput{Run: "run-1", Recipe: "quickstart"})
	require.NoError(t, f.env.GetWorkflowError())
	require.Equal(t, []StageFailure{{Stage: schema.StageAdvantage, Shard: -1, Turn: -1, Activity: api.ComputeAdvantages,
		Kind: "disk_full", Text: "ComputeAdvantages: no room"}}, parked.Parked.Failures)
	require.Equal(t, schema.StageAdvantage, parked.Stage, "not the one that the activity began with")
	require.Equal(t, map[string]float64{api.ComputeAdvantages: 99}, (*asked)[1].Timeouts)
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
			temporal.ApplicationErrorOptions{NonRetryable: true,
				Details: []any{api.FailedPart{Stage: schema.StageSandbox,
					Turn: 2, Activity: api.ExecuteToolCalls}}})
	})
	var parked Progress
	f.env.RegisterDelayedCallback(func() { parked = progressOf(t, f) }, time.Minute)
	f.after(time.Hour, UpdateRetry, RetryInput{TimeoutSeconds: 99})
	f.env.ExecuteWorkflow(TrainRun, TrainRunInput{Run: "run-1", Recipe: "quickstart"})
	require.NoError(t, f.env.GetWorkflowError())
	require.Equal(t, []StageFailure{{
		Stage: schema.StageSandbox, Shard: 1, Turn: 2, Activity: api.ExecuteToolCalls, Kind: "disk_full",
		Text: "ExecuteToolCalls: no room on the device",
	}}, parked.Parked.Failures)
	last := (*asked)[len(*asked)-1]
	require.Equal(t, map[string]float64{api.ExecuteToolCalls: 99}, last.Timeouts)
}
