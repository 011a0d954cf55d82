package workflows

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"

	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/schema"
)

// updateResult collects the answer to an update.
type updateResult struct {
	rejected, failed error
	value            any
}

func (u *updateResult) Accept()          {}
func (u *updateResult) Reject(err error) { u.rejected = err }
func (u *updateResult) Complete(value any, err error) {
	u.value, u.failed = value, err
}

// after sends an update once the workflow's clock has advanced by d.
func (f *fakes) after(d time.Duration, name string, args ...any) *updateResult {
	u := &updateResult{}
	f.env.RegisterDelayedCallback(func() { f.env.UpdateWorkflow(name, name+d.String(), u, args...) }, d)
	return u
}

// broken makes an activity fail for good the given number of times, for the inputs that match.
func broken[I, O any](f *fakes, name string, times int, match func(I) bool, otherwise func(I) (O, error)) *int {
	left := times
	handle(f, name, func(in I) (O, error) {
		var none O
		f.mu.Lock()
		defer f.mu.Unlock()
		if left > 0 && match(in) {
			left--
			return none, temporal.NewNonRetryableApplicationError("no room on the device", "disk_full", nil)
		}
		return otherwise(in)
	})
	return &left
}

// noteLimits records the time limits of each started activity.
func (f *fakes) noteLimits(limits map[string][]time.Duration) func(*activity.Info, context.Context,
	converter.EncodedValues) {
	return func(info *activity.Info, _ context.Context, _ converter.EncodedValues) {
		f.mu.Lock()
		defer f.mu.Unlock()
		limits[info.ActivityType.Name] = append(limits[info.ActivityType.Name], info.StartToCloseTimeout)
	}
}

func progressOf(t *testing.T, f *fakes) Progress {
	t.Helper()
	value, err := f.env.QueryWorkflow(QueryProgress)
	require.NoError(t, err)
	var p Progress
	require.NoError(t, value.Get(&p))
	return p
}

func TestAFailedStageParksAndRetryGoesOn(t *testing.T) {
	f := newFakes(t, api.Plan{Recipe: "r", Steps: 2, Shards: 2, MaxTurns: 1})
	broken(f, api.Resample, 1, func(in api.StageInput) bool { return in.Step == 2 }, f.resample)
	var parked Progress
	f.env.RegisterDelayedCallback(func() { parked = progressOf(t, f) }, time.Minute)
	retry := f.after(time.Hour, UpdateRetry, RetryInput{})
	f.env.ExecuteWorkflow(TrainRun, TrainRunInput{Run: "run-1", Recipe: "quickstart"})

	require.NoError(t, f.env.GetWorkflowError())
	require.NoError(t, retry.rejected)
	require.NotNil(t, parked.Parked)
	require.Equal(t, 2, parked.Parked.Step)
	require.Equal(t, "disk_full", parked.Parked.Kind)
	require.Equal(t, StageFailure{Stage: schema.StageResample, Shard: -1, Turn: -1, Activity: api.Resample,
		Kind: "disk_full", Text: "Resample: no room on the device"}, parked.Parked.Failures[0])
	text := parked.Markdown()
	require.Contains(t, text, "### Parked at step 2: disk_full")
	require.Contains(t, text, "- **resample**: Resample: no room on the device\n")
	require.Contains(t, text, "ropewalk unpark run-1 --retry")
	require.Contains(t, text, "`skip` cannot be done: resample is one piece")
	require.Nil(t, progressOf(t, f).Parked)
	require.Equal(t, 2, f.calls[api.UpdatePolicy])
}

func TestMeasuredTimesThatFailedLongAgoAreTriedOnceMoreBeforeAnyoneIsAsked(t *testing.T) {
	f := newFakes(t, api.Plan{Recipe: "r", Steps: 2, Shards: 1, MaxTurns: 1})
	first := func(in api.RecordTimingsInput) bool { return in.Step == api.InitStep }
	kept := func(api.RecordTimingsInput) (api.Done, error) { return api.Done{}, nil }
	broken(f, api.RecordTimings, 1, first, kept) // an outage that ends before the run does
	f.env.ExecuteWorkflow(TrainRun, TrainRunInput{Run: "run-1", Recipe: "quickstart"})
	require.NoError(t, f.env.GetWorkflowError())
	require.Equal(t, 4+1, f.calls[api.RecordTimings]) // for the start, two steps and the end, with one retry

	f = newFakes(t, api.Plan{Recipe: "r", Steps: 2, Shards: 1, MaxTurns: 1})
	broken(f, api.RecordTimings, 2, first, kept) // an outage that lasts
	skip := f.after(time.Hour, UpdateSkip)
	f.env.ExecuteWorkflow(TrainRun, TrainRunInput{Run: "run-1", Recipe: "quickstart"})
	require.NoError(t, f.env.GetWorkflowError())
	require.NoError(t, skip.rejected)
}

func TestRetryTakesATimeLimitForTheFailedStageAlone(t *testing.T) {
	f := newFakes(t, api.Plan{Recipe: "r", Steps: 1, Shards: 1, MaxTurns: 1})
	broken(f, api.UpdatePolicy, 1, func(api.UpdateInput) bool { return true }, f.update)
	limits := map[string][]time.Duration{}
	f.env.SetOnActivityStartedListener(f.noteLimits(limits))
	f.after(time.Hour, UpdateRetry, RetryInput{TimeoutSeconds: 7200})
	f.env.ExecuteWorkflow(TrainRun, TrainRunInput{Run: "run-1", Recipe: "quickstart"})
	require.NoError(t, f.env.GetWorkflowError())
	require.Equal(t, []time.Duration{time.Hour, 2 * time.Hour}, limits[api.UpdatePolicy])
	require.Equal(t, []time.Duration{5 * time.Minute, 5 * time.Minute}, limits[api.Resample])
}

func TestSkipGoesOnWithoutAShardAndRecordsWhy(t *testing.T) {
	f := newFakes(t, api.Plan{Recipe: "r", Steps: 1, Shards: 3, MaxTurns: 1})
	broken(f, api.ScoreRewards, 1, func(in api.ScoreInput) bool { return in.Shard == 1 }, f.score)
	var excluded []api.ExcludedShard
	handle(f, api.Resample, func(in api.StageInput) (api.Resampled, error) {
		excluded = in.Excluded
		require.Equal(t, ref("prompts", 1), in.Made.One(schema.StagePrompts))
		return f.resample(in)
	})
	f.after(time.Hour, UpdateSkip)
	f.env.ExecuteWorkflow(TrainRun, TrainRunInput{Run: "run-1", Recipe: "quickstart"})
	require.NoError(t, f.env.GetWorkflowError())
	require.Equal(t,
		[]api.ExcludedShard{{Shard: 1, Stage: schema.StageReward,
			Reason: "disk_full: ScoreRewards: no room on the device"}}, excluded)
	require.Equal(t, 8, progressOf(t, f).Lines[0].Trajectories) // from two shards
}

func TestSkipIsRefusedWhereNothingWouldBeLeft(t *testing.T) {
	f := newFakes(t, api.Plan{Recipe: "r", Steps: 1, Shards: 2, MaxTurns: 1})
	broken(f, api.ScoreRewards, 2, func(api.ScoreInput) bool { return true }, f.score)
	skip := f.after(time.Hour, UpdateSkip)
	f.after(2*time.Hour, UpdateAbort)
	f.env.ExecuteWorkflow(TrainRun, TrainRunInput{Run: "run-1", Recipe: "quickstart"})
	require.ErrorContains(t, skip.rejected, "no shard of the step would be left; retry or abort")
	require.ErrorContains(t, f.env.GetWorkflowError(), "aborted: reward, shard 0")
}

func TestAbortFailsTheRunWithWhatFailed(t *testing.T) {
	f := newFakes(t, api.Plan{Recipe: "r", Steps: 1, Shards: 1, MaxTurns: 1})
	broken(f, api.WarmStart, 1, func(api.Scope) bool { return true }, f.warmStart)
	f.after(time.Hour, UpdateAbort)
	f.env.ExecuteWorkflow(TrainRun, TrainRunInput{Run: "run-1", Recipe: "quickstart"})
	var failure *temporal.ApplicationError
	require.ErrorAs(t, f.env.GetWorkflowError(), &failure)
	require.Equal(t, "disk_full", failure.Type())
	require.Contains(t, failure.Message(), "aborted: warm_start: WarmStart: no room on the device")
	require.Contains(t, failure.Message(), "ropewalk resume run-1")
}

func TestASkippedEvaluationIsLeftOut(t *testing.T) {
	f := newFakes(t, api.Plan{Recipe: "r", Steps: 2, Shards: 1, MaxTurns: 1, EvaluateEvery: 1})
	broken(f, api.Evaluate, 1, func(in api.EvaluateInput) bool { return in.Tag == "step" }, f.evaluate)
	f.after(time.Hour, UpdateSkip)
	f.env.ExecuteWorkflow(TrainRun, TrainRunInput{Run: "run-1", Recipe: "quickstart"})
	require.NoError(t, f.env.GetWorkflowError())
	require.Equal(t, 3, f.calls[api.Evaluate])
}

func TestRetryWithOtherSettingsMakesTheRolloutAnew(t *testing.T) {
	f := newFakes(t, api.Plan{Recipe: "r", Steps: 2, Shards: 2, MaxTurns: 1})
	var scopes []string
	left := 1
	handle(f, api.GenerateRollouts, func(in api.GenerateInput) (api.Generated, error) {
		f.mu.Lock()
		defer f.mu.Unlock()
		if left--; left == 0 {
			return api.Generated{}, temporal.NewNonRetryableApplicationError("out of memory", "memory", nil)
		}
		scopes = append(scopes, fmt.Sprintf("step %d gen %d shard %d %s", in.Step, in.Gen, in.Shard, in.Config.Key))
		return f.generate(in)
	})
	amended := f.amends(func(in api.AmendInput) api.Plan {
		return api.Plan{Recipe: "r", Steps: 2, Shards: 1, MaxTurns: 1}
	})
	groups := 64
	retry := f.after(time.Hour, UpdateRetry, RetryInput{ShardGroups: &groups})
	f.env.ExecuteWorkflow(TrainRun, TrainRunInput{Run: "run-1", Recipe: "quickstart"})
	require.NoError(t, f.env.GetWorkflowError())
	require.NoError(t, retry.failed)
	require.Equal(t,
		[]api.AmendInput{{Run: "run-1", Config: ref("config"), From: 1, Rerun: true,
			Set: []string{"rollout.shard_groups=64"}}}, *amended)
	require.Contains(t, scopes[0], "step 1 gen 0") // the shard that did not fail
	require.Equal(t, []string{"step 1 gen 1 shard 0 amended[0]", "step 2 gen 0 shard 0 amended[0]"}, scopes[1:])
}

func TestUpdatesOfWhatIsNotParkedAreRefused(t *testing.T) {
	f := newFakes(t, api.Plan{Recipe: "r", Steps: 1, Shards: 1, MaxTurns: 1})
	f.slowly()
	retry := f.after(30*time.Second, UpdateRetry, RetryInput{})
	skip := f.after(30*time.Second, UpdateSkip)
	f.env.ExecuteWorkflow(TrainRun, TrainRunInput{Run: "run-1", Recipe: "quickstart"})
	require.NoError(t, f.env.GetWorkflowError())
	require.ErrorContains(t, retry.rejected, "the run is not parked")
	require.ErrorContains(t, skip.rejected, "the run is not parked")
}

// The stages after one that was mended before the first step have its settings, too.
func TestAWarmStartIsRetriedWithOtherSettings(t *testing.T) {
	f := newFakes(t, api.Plan{Recipe: "r", Steps: 1, Shards: 1, MaxTurns: 1})
	var configs []string
	broken(f, api.WarmStart, 1, func(api.Scope) bool { return true }, func(in api.Scope) (api.WarmStarted, error) {
		configs = append(configs, in.Config.Key)
		return f.warmStart(in)
	})
	handle(f, api.Evaluate, func(in api.EvaluateInput) (api.Evaluated, error) {
		configs = append(configs, in.Tag+" "+in.Config.Key)
		return f.evaluate(in)
	})
	amended := f.amends(func(api.AmendInput) api.Plan {
		return api.Plan{Recipe: "r", Steps: 1, Shards: 1, MaxTurns: 1}
	})
	retry := f.after(time.Hour, UpdateRetry, RetryInput{Set: []string{"warm_start.noise=0"}})
	f.env.ExecuteWorkflow(TrainRun, TrainRunInput{Run: "run-1", Recipe: "quickstart"})
	require.NoError(t, f.env.GetWorkflowError())
	require.NoError(t, retry.failed)
	require.Equal(t, 0, (*amended)[0].From)
	require.Equal(t, []string{"amended[0]", "warm_start amended[0]", "final amended[0]"}, configs)
}

// What fails before the first step can be mended by other settings, which a resumed run reads before its first step,
// too. An evaluation later is made under the settings that it is retried with, and no rollout starts again for it.
func TestRetryWithOtherSettingsOutsideOfSteps(t *testing.T) {
	for _, c := range []struct {
		tag    string
		from   int
		config string
	}{{"warm_start", 0, "amended[0]"}, {"final", 2, "amended[0]"}} {
		f := newFakes(t, api.Plan{Recipe: "r", Steps: 1, Shards: 1, MaxTurns: 1})
		evaluated := map[string]string{}
		broken(f, api.Evaluate, 1, func(in api.EvaluateInput) bool { return in.Tag == c.tag },
			func(in api.EvaluateInput) (api.Evaluated, error) {
				evaluated[in.Tag] = in.Config.Key
				return f.evaluate(in)
			})
		amended := f.amends(func(api.AmendInput) api.Plan {
			return api.Plan{Recipe: "r", Steps: 1, Shards: 1, MaxTurns: 1}
		})
		set := []string{"evaluation.problems=6"}
		retry := f.after(time.Hour, UpdateRetry, RetryInput{Set: set})
		f.env.ExecuteWorkflow(TrainRun, TrainRunInput{Run: "run-1", Recipe: "quickstart"})
		require.NoError(t, f.env.GetWorkflowError())
		require.NoError(t, retry.failed)
		require.Equal(t, []api.AmendInput{{Run: "run-1", Config: ref("config"), From: c.from, Set: set}}, *amended)
		require.Equal(t, 1, f.calls[api.GenerateRollouts])
		require.Equal(t, c.config, evaluated[c.tag])
	}
}
