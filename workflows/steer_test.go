package workflows

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/workflow"

	"github.com/ropewalk/ropewalk/internal/step/api"
)

// slowly makes every update of the policy take a minute of the workflow's clock.
func (f *fakes) slowly() {
	f.env.OnActivity(api.UpdatePolicy, mock.Anything, mock.Anything).After(time.Minute).Return(f.update)
}

func TestPauseHoldsBeforeTheNextStepAndUnpauseGoesOn(t *testing.T) {
	f := newFakes(t, api.Plan{Recipe: "r", Steps: 3, Shards: 1, MaxTurns: 1})
	f.slowly()
	pause := f.after(30*time.Second, UpdatePause)
	again := f.after(31*time.Second, UpdatePause)
	var held Progress
	f.env.RegisterDelayedCallback(func() { held = progressOf(t, f) }, time.Hour)
	f.after(2*time.Hour, UpdateUnpause)
	f.env.ExecuteWorkflow(TrainRun, TrainRunInput{Run: "run-1", Recipe: "quickstart"})
	require.NoError(t, f.env.GetWorkflowError())
	require.Equal(t, Steered{Step: 2, What: "the run pauses before step 2"}, pause.value)
	require.ErrorContains(t, again.rejected, "paused already")
	require.True(t, held.Paused)
	require.Equal(t, StagePaused, held.Stage)
	require.Contains(t, held.Markdown(), "ropewalk unpause run-1")
	require.Len(t, held.Lines, 1)
	require.Equal(t, 3, f.calls[api.PublishPolicy])
}

func TestStopEndsAfterTheStepThatRunsAndRecordsIt(t *testing.T) {
	f := newFakes(t, api.Plan{Recipe: "r", Steps: 9, Shards: 1, MaxTurns: 1})
	amended := f.amends(func(api.AmendInput) api.Plan {
		return api.Plan{Recipe: "r", Steps: 2, Shards: 1,
			MaxTurns: 1}
	})
	f.slowly()
	stop := f.after(90*time.Second, UpdateStop)
	f.env.ExecuteWorkflow(TrainRun, TrainRunInput{Run: "run-1", Recipe: "quickstart"})
	require.NoError(t, f.env.GetWorkflowError())
	require.Equal(t, 2, stop.value.(Steered).Step)
	require.Equal(t, []api.AmendInput{{Run: "run-1", Config: ref("config"), From: 3, Set: []string{"steps=2"}}},
		*amended)
	var out TrainRunResult
	require.NoError(t, f.env.GetWorkflowResult(&out))
	require.Equal(t, 2, out.Steps)
	require.Equal(t, "warm+1+2", out.Policy.Digest)
	require.Equal(t, 2, f.calls[api.Evaluate])
}

func TestSetHoldsFromTheNextStepOn(t *testing.T) {
	f := newFakes(t, api.Plan{Recipe: "r", Steps: 2, Shards: 1, MaxTurns: 1})
	amended := f.amends(func(api.AmendInput) api.Plan {
		return api.Plan{Recipe: "r", Steps: 3, Shards: 1,
			MaxTurns: 1}
	})
	configs := map[int]string{}
	f.env.OnActivity(api.UpdatePolicy, mock.Anything,
		mock.Anything).After(time.Minute).Return(func(in api.UpdateInput) (api.Updated, error) {
		configs[in.Step] = in.Config.Key
		return f.update(in)
	})
	lr, steps, few := 1e-4, 3, 0
	set := f.after(30*time.Second, UpdateSet, SetInput{LearningRate: &lr, Steps: &steps})
	none := f.after(31*time.Second, UpdateSet, SetInput{})
	low := f.after(32*time.Second, UpdateSet, SetInput{Steps: &few})
	odd := f.after(33*time.Second, UpdateSet, json.RawMessage(`{"learning_rat":1}`))
	f.env.ExecuteWorkflow(TrainRun, TrainRunInput{Run: "run-1", Recipe: "quickstart"})
	require.NoError(t, f.env.GetWorkflowError())
	require.Equal(t, Steered{Step: 2, What: "from step 2 on: optimizer.lr=0.0001, steps=3"}, set.value)
	require.Len(t, *amended, 1)
	require.Equal(t, map[int]string{1: "config[]", 2: "amended[0]", 3: "amended[0]"}, configs)
	require.ErrorContains(t, none.rejected, "give learning_rate, temperature or steps")
	require.ErrorContains(t, low.rejected, "steps: must be ≥ 1, the step that runs, got 0")
	require.ErrorContains(t, odd.rejected, `unknown field "learning_rat"`)
	p := progressOf(t, f)
	require.Contains(t, p.Markdown(), "- changed from step 2 on: optimizer.lr=0.0001, steps=3")
}

func TestAResumedRunHoldsToItsAmendments(t *testing.T) {
	f := newFakes(t, api.Plan{Recipe: "r", Steps: 9, Shards: 1, MaxTurns: 1})
	f.next = 3
	f.amended = []api.Amendment{{Manifest: ref("amended", 0), From: 4,
		Plan: api.Plan{Recipe: "r", Steps: 4, Shards: 1, MaxTurns: 1}}}
	f.env.ExecuteWorkflow(TrainRun, TrainRunInput{Run: "run-1", Resume: true})
	require.NoError(t, f.env.GetWorkflowError())
	require.Equal(t, 2, f.calls[api.UpdatePolicy]) // steps 3 and 4
}

// A run that is told to change builds continues as new before its next step, through HandOver, which goes on as the
// same run.
func TestAnUpgradeHandsOverBeforeTheNextStep(t *testing.T) {
	f := newFakes(t, api.Plan{Recipe: "r", Steps: 4, Shards: 1, MaxTurns: 1})
	f.slowly()
	told := f.after(90*time.Second, UpdateUpgrade)
	f.env.ExecuteWorkflow(TrainRun, TrainRunInput{Run: "run-1", Recipe: "quickstart"})
	require.Equal(t, Steered{Step: 3, What: "from step 3 on: the current build of the workers"}, told.value)
	require.Equal(t, 2, f.calls[api.PublishPolicy])
	hop := continued(t, f, HandOverName)

	f = newFakes(t, api.Plan{Recipe: "r", Steps: 4, Shards: 1, MaxTurns: 1})
	f.env.ExecuteWorkflow(HandOver, hop)
	next := continued(t, f, TrainRunName)
	require.Equal(t, hop, next)
	require.Empty(t, f.calls, "it runs no activity")

	f = newFakes(t, api.Plan{Recipe: "r", Steps: 4, Shards: 1, MaxTurns: 1})
	f.env.ExecuteWorkflow(TrainRun, next)
	var out TrainRunResult
	require.NoError(t, f.env.GetWorkflowResult(&out))
	require.Equal(t, "warm+1+2+3+4", out.Policy.Digest)
	require.Equal(t, 2, f.calls[api.PublishPolicy])

	f = newFakes(t, api.Plan{Recipe: "r", Steps: 4, Shards: 1, MaxTurns: 1})
	f.env.ExecuteWorkflow(HandOver, TrainRunInput{Run: "run-1", Recipe: "quickstart"})
	require.ErrorContains(t, f.env.GetWorkflowError(), "only a TrainRun that continues as new starts it")
}

// A run whose times are recorded by a superseded build changes to the current one without being told: before the step
// after the one that ran meanwhile, and when it continues as new anyway.
func TestASupersededBuildHandsOver(t *testing.T) {
	for superseded, next := range map[int]int{2: 4, stepsPerHistory: stepsPerHistory + 1} {
		f := newFakes(t, api.Plan{Recipe: "r", Steps: stepsPerHistory + 5, Shards: 1, MaxTurns: 1})
		handle(f, api.RecordTimings, func(in api.RecordTimingsInput) (api.TimingsRecorded, error) {
			return api.TimingsRecorded{Superseded: in.Part == "step" && in.Step == superseded}, nil
		})
		f.slowly()
		f.env.ExecuteWorkflow(TrainRun, TrainRunInput{Run: "run-1", Recipe: "quickstart"})
		require.Equal(t, next, continued(t, f, HandOverName).Continued.Next)
	}
}

// continued returns the input with which the workflow continued as new under a type.
func continued(t *testing.T, f *fakes, as string) (in TrainRunInput) {
	t.Helper()
	var again *workflow.ContinueAsNewError
	require.ErrorAs(t, f.env.GetWorkflowError(), &again)
	require.Equal(t, as, again.WorkflowType.Name)
	require.NoError(t, json.Unmarshal(again.Input.Payloads[0].Data, &in))
	return in
}

func TestContinueAsNewCarriesPauseAndAmendments(t *testing.T) {
	f := newFakes(t, api.Plan{Recipe: "r", Steps: stepsPerHistory + 5, Shards: 1, MaxTurns: 1})
	f.amends(func(api.AmendInput) api.Plan {
		return api.Plan{Recipe: "r", Steps: stepsPerHistory + 1, Shards: 1, MaxTurns: 1}
	})
	f.slowly()
	steps := stepsPerHistory + 1
	f.after(30*time.Second, UpdateSet, SetInput{Steps: &steps})
	f.env.ExecuteWorkflow(TrainRun, TrainRunInput{Run: "run-1", Recipe: "quickstart"})
	var again *workflow.ContinueAsNewError
	require.ErrorAs(t, f.env.GetWorkflowError(), &again)
	var in TrainRunInput
	require.NoError(t, json.Unmarshal(again.Input.Payloads[0].Data, &in))
	require.Len(t, in.Continued.Amendments, 1)
	require.Equal(t, stepsPerHistory+1, in.Continued.Prepared.Plan.Steps)
}
