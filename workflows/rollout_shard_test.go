package workflows

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/schema"
)

// startedShards lists the shard workflows that have started, with their inputs.
func startedShards(f *fakes) (ids *[]string, inputs *[]api.EpisodesInput) {
	ids, inputs = &[]string{}, &[]api.EpisodesInput{}
	f.env.SetOnChildWorkflowStartedListener(func(info *workflow.Info, _ workflow.Context,
		args converter.EncodedValues) {
		if info.WorkflowType.Name != RolloutShardName {
			return
		}
		var in api.EpisodesInput
		if err := args.Get(&in); err != nil {
			panic(err)
		}
		*ids, *inputs = append(*ids, info.WorkflowExecution.ID), append(*inputs, in)
	})
	return ids, inputs
}

func TestEachShardOfAStepIsAWorkflow(t *testing.T) {
	f := newFakes(t, api.Plan{Recipe: "r", Steps: 2, Shards: 2, MaxTurns: 30})
	ids, _ := startedShards(f)
	var commits []api.CommitInput
	handle(f, api.CommitStages, func(in api.CommitInput) (api.Committed, error) {
		commits = append(commits, in)
		return committed(in, f.plan, func(stage string, i int) schema.Ref { return ref(stage, in.Step, i) }), nil
	})
	var advantages []api.StageInput
	handle(f, api.ComputeAdvantages, func(in api.StageInput) (api.Advantages, error) {
		advantages = append(advantages, in)
		return api.Advantages{}, nil
	})
	f.env.ExecuteWorkflow(TrainRun, TrainRunInput{Run: "run-1", Recipe: "quickstart"})
	require.NoError(t, f.env.GetWorkflowError())
	slices.Sort(*ids)
	require.Equal(t, []string{"run-1/step=1/shard=0", "run-1/step=1/shard=1", "run-1/step=2/shard=0",
		"run-1/step=2/shard=1"}, *ids)
	require.Equal(t, []schema.Ref{ref("rewards", 1, 0), ref("rewards", 1, 1)}, commits[0].Rewards,
		"the rewards lead to everything else")
	require.Empty(t, commits[0].Stages)
	require.Equal(t, []schema.Ref{ref(schema.StageRollout, 1, 0)}, advantages[0].Made.All(schema.StageRollout))
	require.Equal(t, ref(schema.StageReward, 1, 3), advantages[0].Made.One(schema.StageReward))
	line := progressOf(t, f).Lines[0]
	require.Equal(t, 8, line.Trajectories)
}

// A step runs the activities of few short shards itself.
func TestFewShortShardsAreNoWorkflows(t *testing.T) {
	plan := api.Plan{Recipe: "r", Steps: 1, Shards: 2, MaxTurns: 3}
	f := newFakes(t, plan)
	ids, _ := startedShards(f)
	var commits []api.CommitInput
	handle(f, api.CommitStages, func(in api.CommitInput) (api.Committed, error) {
		commits = append(commits, in)
		return committed(in, f.plan, func(stage string, i int) schema.Ref { return ref(stage, in.Step, i) }), nil
	})
	f.env.ExecuteWorkflow(TrainRun, TrainRunInput{Run: "run-1", Recipe: "quickstart"})
	require.NoError(t, f.env.GetWorkflowError())
	require.Empty(t, *ids)
	require.Len(t, commits[0].Rewards, 2)
	require.Equal(t, 8, progressOf(t, f).Lines[0].Trajectories)

	for name, change := range map[string]func(*api.Plan){
		"many shards":   func(p *api.Plan) { p.Shards = 10 },
		"many turns":    func(p *api.Plan) { p.MaxTurns = 50 },
		"several hosts": func(p *api.Plan) { p.Hosts = 2 },
		"rounds":        func(p *api.Plan) { p.Dynamic = &api.Dynamic{} },
	} {
		other := plan
		change(&other)
		require.False(t, fewActivities(other), name)
	}
	require.True(t, fewActivities(plan))
}

// The failure of a shard crosses the boundary of its workflow with its stage, shard, turn and activity. The other
// shards continue.
func TestAFailedShardNamesStageAndTurnAndLeavesTheOthersAlone(t *testing.T) {
	f := newFakes(t, api.Plan{Recipe: "r", Steps: 1, Shards: 3, MaxTurns: 40})
	broken(f, api.ExecuteToolCalls, 1, func(in api.ToolsInput) bool { return in.Shard == 1 && in.Turn == 1 },
		func(in api.ToolsInput) (api.ToolsDone, error) {
			return api.ToolsDone{Done: api.Done{Manifest: ref("tools", in.Step, in.Shard, in.Turn)}}, nil
		})
	var parked Progress
	f.env.RegisterDelayedCallback(func() { parked = progressOf(t, f) }, time.Minute)
	f.after(time.Hour, UpdateRetry, RetryInput{TimeoutSeconds: 99})
	limits := map[string][]time.Duration{}
	f.env.SetOnActivityStartedListener(f.noteLimits(limits))
	f.env.ExecuteWorkflow(TrainRun, TrainRunInput{Run: "run-1", Recipe: "quickstart"})
	require.NoError(t, f.env.GetWorkflowError())
	require.Equal(t, []StageFailure{{
		Stage: schema.StageSandbox, Shard: 1, Turn: 1, Activity: api.ExecuteToolCalls, Kind: "disk_full",
		Text: "ExecuteToolCalls: no room on the device",
	}}, parked.Parked.Failures)
	require.Equal(t, 2+3, f.calls[api.ScoreRewards], "two shards before the retry, all of them after it")
	require.Contains(t, limits[api.ExecuteToolCalls], 99*time.Second, "a shard's activities take the retry's limit")
}

// If something outside ends a shard's workflow, the shard fails and a person can retry it; the step does not count as
// cancelled.
func TestAShardThatIsEndedFromOutsideParksTheRun(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"cancelled":  {temporal.NewCanceledError(), "the shard's workflow was cancelled"},
		"terminated": {errors.New("terminated"), "terminated"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFakes(t, api.Plan{Recipe: "r", Steps: 1, Shards: 2, MaxTurns: 30})
			times := 0
			f.env.OnWorkflow(RolloutShardName, mock.Anything, mock.Anything).Return(func(ctx workflow.Context,
				in api.EpisodesInput) (api.Episodes, error) {
				if times++; in.Shard == 1 && times <= 2 {
					return api.Episodes{}, c.err
				}
				return RolloutShard(ctx, in)
			})
			var parked Progress
			f.env.RegisterDelayedCallback(func() { parked = progressOf(t, f) }, time.Minute)
			f.after(time.Hour, UpdateRetry, RetryInput{})
			f.env.ExecuteWorkflow(TrainRun, TrainRunInput{Run: "run-1", Recipe: "quickstart"})
			require.NoError(t, f.env.GetWorkflowError())
			require.NotNil(t, parked.Parked)
			require.Equal(t, "rollout, shard 1", parked.Parked.Failures[0].where())
			require.Contains(t, parked.Parked.Failures[0].Text, c.want)
		})
	}
}

func TestCancellingTheRunCancelsItsShards(t *testing.T) {
	f := newFakes(t, api.Plan{Recipe: "r", Steps: 1, Shards: 2, MaxTurns: 30})
	var mu sync.Mutex
	cancelled := 0
	f.env.OnWorkflow(RolloutShardName, mock.Anything, mock.Anything).Return(func(ctx workflow.Context,
		_ api.EpisodesInput) (api.Episodes, error) {
		err := workflow.Sleep(ctx, time.Hour)
		mu.Lock()
		defer mu.Unlock()
		cancelled++
		return api.Episodes{}, err
	})
	f.env.RegisterDelayedCallback(f.env.CancelWorkflow, time.Minute)
	f.env.ExecuteWorkflow(TrainRun, TrainRunInput{Run: "run-1", Recipe: "quickstart"})
	require.True(t, temporal.IsCanceledError(f.env.GetWorkflowError()))
	require.Equal(t, 2, cancelled)
}

// The measured times of many turns would exceed the step's payload limits, so each shard records its own. The step's
// line has the same figures either way.
func TestShardsOfManyTurnsRecordTheirOwnTimes(t *testing.T) {
	timing := func(stage string, shard, turn int) api.Timing {
		at := int64(1e6 * (1 + shard + 10*turn))
		return api.Timing{Stage: stage, Shard: shard, Turn: turn, Start: at, End: at + 2e6}
	}
	lines := map[bool]StepLine{}
	for _, turns := range []int{30, 400} {
		f := newFakes(t, api.Plan{Recipe: "r", Steps: 1, Shards: 2, MaxTurns: turns})
		own := shardsRecord(f.plan)
		handle(f, api.GenerateRollouts, func(in api.GenerateInput) (api.Generated, error) {
			out := api.Generated{Done: api.Done{Manifest: ref("turn", in.Step, in.Shard, in.Turn),
				Timing: timing(schema.StageRollout, in.Shard, in.Turn)}}
			if in.Turn == 0 {
				out.Calls = 1
			}
			return out, nil
		})
		handle(f, api.ScoreRewards, func(in api.ScoreInput) (api.Scored, error) {
			out, err := f.score(in)
			out.Timing = timing(schema.StageReward, in.Shard, 3)
			return out, err
		})
		recorded := map[int][]api.Timing{} // by shard; −1 is the step
		handle(f, api.RecordTimings, func(in api.RecordTimingsInput) (api.Done, error) {
			if in.Step == 1 && in.Part == "step" {
				shard := -1
				if in.Shard != nil {
					shard = *in.Shard
				}
				f.mu.Lock()
				defer f.mu.Unlock()
				recorded[shard] = in.Timings
			}
			return api.Done{}, nil
		})
		f.env.ExecuteWorkflow(TrainRun, TrainRunInput{Run: "run-1", Recipe: "quickstart"})
		require.NoError(t, f.env.GetWorkflowError())
		line := progressOf(t, f).Lines[0]
		lines[own] = line
		of := func(shard int, stage string) (n int) {
			for _, x := range recorded[shard] {
				if x.Stage == stage {
					n++
				}
			}
			return n
		}
		require.Equal(t, own, of(-1, schema.StageReward) == 0)
		for shard := range 2 {
			require.Equal(t, own, of(shard, schema.StageRollout) == 2, "shard %d", shard)
		}
		require.Equal(t, own, of(-1, schema.StageRollout) == 0)
	}
	require.Equal(t, lines[false].StageSeconds, lines[true].StageSeconds)
	require.Equal(t, 6.0, lines[true].StageSeconds[schema.StageRollout], "3 s of two shards that overlap, twice")
}

// Hosts that share a run's models have one leader. If the leader is gone, all shards go to the next leader, and each
// shard adopts its committed work.
func TestShardsOfSeveralHostsFollowTheirLeader(t *testing.T) {
	f := newFakes(t, api.Plan{Recipe: "r", Steps: 1, Shards: 3, MaxTurns: 1, Hosts: 2})
	var homes []string
	handle(f, api.FindHome, func(api.HomeInput) (api.Home, error) {
		f.mu.Lock()
		defer f.mu.Unlock()
		homes = append(homes, string(rune('a'+len(homes))))
		return api.Home{Host: homes[len(homes)-1]}, nil
	})
	ids, inputs := startedShards(f)
	asked := map[int]bool{} // by shard: for each shard the first leader is gone
	handle(f, api.GenerateRollouts, func(in api.GenerateInput) (api.Generated, error) {
		f.mu.Lock()
		first := !asked[in.Shard]
		asked[in.Shard] = true
		f.mu.Unlock()
		if first {
			return api.Generated{}, temporal.NewNonRetryableApplicationError("no room", api.FailElsewhere, nil)
		}
		return f.generate(in)
	})
	f.env.ExecuteWorkflow(TrainRun, TrainRunInput{Run: "run-1", Recipe: "quickstart"})
	require.NoError(t, f.env.GetWorkflowError())
	require.Len(t, homes, 2)
	require.Len(t, *ids, 6)
	followed := map[int][]string{} // the leaders of each shard's starts; shards start in any order
	for _, in := range *inputs {
		followed[in.Shard] = append(followed[in.Shard], in.Home)
	}
	require.Equal(t, map[int][]string{0: homes, 1: homes, 2: homes}, followed)
}
