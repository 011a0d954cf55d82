package workflows

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/schema"
)

// startedSteps lists the steps that have started as workflows.
func startedSteps(f *fakes) *[]string {
	ids := &[]string{}
	f.env.SetOnChildWorkflowStartedListener(func(info *workflow.Info, _ workflow.Context, _ converter.EncodedValues) {
		if info.WorkflowType.Name == TrainStepName {
			*ids = append(*ids, info.WorkflowExecution.ID)
		}
	})
	return ids
}

// ownSteps fakes what interleaved steps call.
func (f *fakes) ownSteps(fails func(api.EpisodesInput) error) (asked *[]api.EpisodesInput, batches *[]api.BatchInput) {
	asked = f.episodes(fails)
	return asked, f.together(func(api.BatchInput) error { return nil })
}

// A run takes short interleaved steps itself. Other steps are workflows. The policy and the figures are the same either
// way.
func TestARunTakesShortStepsItself(t *testing.T) {
	short := api.Plan{Recipe: "r", Steps: 2, Shards: 2, MaxTurns: 3, Interleaved: true}
	for name, one := range map[string]struct {
		change func(*api.Plan)
		itself bool
	}{
		"short":         {itself: true},
		"four shards":   {change: func(p *api.Plan) { p.Shards = 4 }, itself: true},
		"five shards":   {change: func(p *api.Plan) { p.Shards = 5 }},
		"many turns":    {change: func(p *api.Plan) { p.MaxTurns = 50 }},
		"staged":        {change: func(p *api.Plan) { p.Interleaved = false }},
		"several hosts": {change: func(p *api.Plan) { p.Hosts = 2 }},
	} {
		t.Run(name, func(t *testing.T) {
			plan := short
			if one.change != nil {
				one.change(&plan)
			}
			f := newFakes(t, plan)
			handle(f, api.FindHome, func(api.HomeInput) (api.Home, error) { return api.Home{Host: "a"}, nil })
			f.ownSteps(func(api.EpisodesInput) error { return nil })
			ids := startedSteps(f)
			f.env.ExecuteWorkflow(TrainRun, TrainRunInput{Run: "run-1", Recipe: "quickstart"})
			require.NoError(t, f.env.GetWorkflowError())
			if one.itself {
				require.Empty(t, *ids)
			} else {
				require.Equal(t, []string{"run-1/step=1", "run-1/step=2"}, *ids)
			}
			var out TrainRunResult
			require.NoError(t, f.env.GetWorkflowResult(&out))
			require.Equal(t, "warm+1+2", out.Policy.Digest)
			require.Len(t, progressOf(t, f).Lines, 2)
		})
	}
}

// While a run takes a step itself, it shows the step's stage.
func TestARunShowsTheStageOfItsOwnStep(t *testing.T) {
	f := newFakes(t, api.Plan{Recipe: "r", Steps: 2, Shards: 1, MaxTurns: 1, Interleaved: true})
	f.ownSteps(func(api.EpisodesInput) error { return nil })
	f.slowly()
	var during []Progress
	for _, d := range []time.Duration{30 * time.Second, 90 * time.Second} {
		f.env.RegisterDelayedCallback(func() { during = append(during, progressOf(t, f)) }, d)
	}
	f.env.ExecuteWorkflow(TrainRun, TrainRunInput{Run: "run-1", Recipe: "quickstart"})
	require.NoError(t, f.env.GetWorkflowError())
	require.Len(t, during, 2)
	for i, p := range during {
		require.Equal(t, i+1, p.Step)
		require.Equal(t, schema.StageUpdate, p.Stage)
		require.Len(t, p.Lines, i)
	}
}

// A run that parks in a step of its own names each failed shard, and goes on without them or with other settings.
func TestAFailedShardOfAnOwnStepIsSkippedOrRetried(t *testing.T) {
	broken := func(in api.EpisodesInput) error {
		if in.Shard == 0 || in.Gen > 0 {
			return nil
		}
		return temporal.NewNonRetryableApplicationError("no room on the device", "disk_full", nil)
	}
	plan := api.Plan{Recipe: "r", Steps: 1, Shards: 3, MaxTurns: 1, Interleaved: true}

	f := newFakes(t, plan)
	_, batches := f.ownSteps(broken)
	var parked Progress
	f.env.RegisterDelayedCallback(func() { parked = progressOf(t, f) }, time.Minute)
	skip := f.after(time.Hour, UpdateSkip)
	f.env.ExecuteWorkflow(TrainRun, TrainRunInput{Run: "run-1", Recipe: "quickstart"})
	require.NoError(t, f.env.GetWorkflowError())
	require.NoError(t, skip.rejected)
	require.Equal(t, 1, parked.Parked.Step)
	require.Equal(t, schema.StageRollout, parked.Stage)
	require.Len(t, parked.Parked.Failures, 2)
	require.Equal(t, StageFailure{Stage: schema.StageRollout, Shard: 2, Turn: -1, Activity: api.RunEpisodes,
		Kind: "disk_full", Text: "RunEpisodes: no room on the device"}, parked.Parked.Failures[1])
	reason := "disk_full: RunEpisodes: no room on the device"
	require.Equal(t, []api.ExcludedShard{{Shard: 1, Stage: schema.StageRollout, Reason: reason},
		{Shard: 2, Stage: schema.StageRollout, Reason: reason}}, (*batches)[0].Excluded)
	require.Len(t, (*batches)[0].Commit.Rewards, 1)

	f = newFakes(t, plan)
	asked, batches := f.ownSteps(broken)
	f.amends(func(api.AmendInput) api.Plan { return plan })
	groups := 2
	retry := f.after(time.Hour, UpdateRetry, RetryInput{ShardGroups: &groups})
	f.env.ExecuteWorkflow(TrainRun, TrainRunInput{Run: "run-1", Recipe: "quickstart"})
	require.NoError(t, f.env.GetWorkflowError())
	require.NoError(t, retry.rejected)
	require.Len(t, *asked, 6)
	require.Equal(t, 1, (*asked)[5].Gen)
	require.Empty(t, (*batches)[0].Excluded)

	f = newFakes(t, plan)
	f.ownSteps(broken)
	f.after(time.Hour, UpdateAbort)
	f.env.ExecuteWorkflow(TrainRun, TrainRunInput{Run: "run-1", Recipe: "quickstart"})
	require.ErrorContains(t, f.env.GetWorkflowError(), "aborted: rollout, shard 1: RunEpisodes: no room on the device")
	require.Equal(t, schema.StateFailed, f.noted[len(f.noted)-1].State)
}
