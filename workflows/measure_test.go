package workflows

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/schema"
)

// apart is a plan whose policies are measured alongside the steps, and whose prompts are selected ahead.
func apart(steps, every int) api.Plan {
	return api.Plan{Recipe: "r", Steps: steps, Shards: 1, MaxTurns: 1, EvaluateEvery: every,
		Evaluations: api.EvaluateAlongside, PromptsAhead: true}
}

// journal makes the fakes note evaluations, selections, updates and publications in their order.
func (f *fakes) journal() func() []string {
	var done []string
	note := func(format string, args ...any) {
		f.mu.Lock()
		defer f.mu.Unlock()
		done = append(done, fmt.Sprintf(format, args...))
	}
	handle(f, api.SelectPrompts, func(in api.PromptsInput) (api.Done, error) {
		note("select %d", in.Step)
		return api.Done{Manifest: ref("prompts", in.Step)}, nil
	})
	handle(f, api.Evaluate, func(in api.EvaluateInput) (api.Evaluated, error) {
		note("evaluate %d %s %s", in.Step, in.Tag, in.Policy.Digest)
		return f.evaluate(in)
	})
	handle(f, api.PublishPolicy, func(in api.PublishInput) (api.Published, error) {
		note("publish %d", in.Step)
		return api.Published{Done: api.Done{Manifest: ref("publish", in.Step)}}, nil
	})
	return func() []string {
		f.mu.Lock()
		defer f.mu.Unlock()
		return slices.Clone(done)
	}
}

// before requires that of two things the first was done first, and each once.
func before(t *testing.T, done []string, first, second string) {
	t.Helper()
	for _, what := range []string{first, second} {
		require.Equal(t, slices.Index(done, what), len(done)-1-indexFromEnd(done, what), "%s once: %v", what, done)
		require.Contains(t, done, what)
	}
	require.Less(t, slices.Index(done, first), slices.Index(done, second), "%v", done)
}

func indexFromEnd(done []string, what string) int {
	reversed := slices.Clone(done)
	slices.Reverse(reversed)
	return slices.Index(reversed, what)
}

// Evaluations measure the same policies at the same places as between the steps, each before the next publication,
// which names it. The last evaluation has its own place.
func TestEvaluationsRunAlongsideTheNextStep(t *testing.T) {
	f := newFakes(t, apart(5, 2))
	asked := f.pruning(never)
	done := f.journal()
	var selected []int // steps whose prompts were there when they began
	f.env.SetOnChildWorkflowStartedListener(
		func(info *workflow.Info, _ workflow.Context, args converter.EncodedValues) {
			var in TrainStepInput
			if info.WorkflowType.Name == TrainStepName && args.Get(&in) == nil && in.Prompts != nil {
				selected = append(selected, in.Step)
			}
		})
	f.env.ExecuteWorkflow(TrainRun, TrainRunInput{Run: "run-1", Recipe: "quickstart"})
	require.NoError(t, f.env.GetWorkflowError())
	before(t, done(), "evaluate -1 warm_start warm", "publish 1")
	before(t, done(), "publish 2", "evaluate 2 step "+afterSteps(2))
	before(t, done(), "evaluate 2 step "+afterSteps(2), "publish 3")
	before(t, done(), "evaluate 4 step "+afterSteps(4), "publish 5")
	before(t, done(), "publish 5", "evaluate 5 final "+afterSteps(5))
	require.Equal(t, 4, f.calls[api.Evaluate])
	var out TrainRunResult
	require.NoError(t, f.env.GetWorkflowResult(&out))
	require.Equal(t, float64(len("warm")), out.Warm.Success)
	var evaluated []int
	for _, in := range *asked {
		for _, e := range in.Evaluated {
			evaluated = append(evaluated, e.Step)
		}
	}
	require.Equal(t, []int{2, 4}, evaluated, "pruning is told of each once")
	require.Equal(t, []int{2, 3, 4, 5}, selected)
	require.Equal(t, 5, f.calls[api.SelectPrompts])
}

// The update does not wait for the evaluation.
func TestAStepUpdatesWhileThePolicyBeforeItIsMeasured(t *testing.T) {
	f := newFakes(t, apart(2, 1))
	updated := make(chan struct{})
	handle(f, api.UpdatePolicy, func(in api.UpdateInput) (api.Updated, error) {
		if in.Step == 2 {
			close(updated)
		}
		return f.update(in)
	})
	handle(f, api.Evaluate, func(in api.EvaluateInput) (api.Evaluated, error) {
		if in.Step == 1 {
			select {
			case <-updated:
			case <-time.After(hangs):
				return api.Evaluated{}, errors.New("step 2 does not update while the policy after step 1 is measured")
			}
		}
		return f.evaluate(in)
	})
	f.env.ExecuteWorkflow(TrainRun, TrainRunInput{Run: "run-1", Recipe: "quickstart"})
	require.NoError(t, f.env.GetWorkflowError())
}

// An evaluation that fails parks the run; a retry measures again without repeating the step's work, and a skip leaves
// the evaluation out.
func TestAnEvaluationAlongsideThatFailsParksTheRun(t *testing.T) {
	broken := temporal.NewNonRetryableApplicationError("the sampler is broken", "x", nil)
	for _, action := range []string{UpdateRetry, UpdateSkip, UpdateAbort} {
		f := newFakes(t, apart(4, 2))
		failing := true
		handle(f, api.Evaluate, func(in api.EvaluateInput) (api.Evaluated, error) {
			if in.Step == 2 && failing {
				failing = false
				return api.Evaluated{}, broken
			}
			return f.evaluate(in)
		})
		f.after(time.Hour, action)
		f.env.ExecuteWorkflow(TrainRun, TrainRunInput{Run: "run-1", Recipe: "quickstart"})
		if action == UpdateAbort {
			require.ErrorContains(t, f.env.GetWorkflowError(), "evaluate: Evaluate: the sampler is broken")
			continue
		}
		require.NoError(t, f.env.GetWorkflowError(), action)
		var out TrainRunResult
		require.NoError(t, f.env.GetWorkflowResult(&out))
		require.Equal(t, afterSteps(4), out.Policy.Digest)
		want := 4 // before training, after step 2, failed and again, after the last step
		if action == UpdateSkip {
			want = 3
		}
		require.Equal(t, want, f.calls[api.Evaluate], action)
	}
}

// The evaluation before training cannot be left out, nor can an update that fails alongside an evaluation.
func TestSkipsAlongside(t *testing.T) {
	r := &trainRun{due: &Due{Input: api.EvaluateInput{Tag: "warm_start"}}}
	other := func([]StageFailure) skipping { return skipping{refused: "other"} }
	evaluate, update := StageFailure{Stage: schema.StageEvaluate}, StageFailure{Stage: schema.StageUpdate}
	require.Contains(t, r.skipAlongside(other)([]StageFailure{evaluate}).refused, "before and after")
	r.due.Input.Tag = api.TagStep
	require.Empty(t, r.skipAlongside(other)([]StageFailure{evaluate}).refused)
	require.Equal(t, "other", r.skipAlongside(other)([]StageFailure{evaluate, update}).refused)
}

// A run that pauses measures its policy before it waits.
func TestAPausedRunHasMeasuredItsPolicy(t *testing.T) {
	f := newFakes(t, apart(3, 1))
	done := f.journal()
	f.slowly()
	f.after(30*time.Second, UpdatePause)
	var whilePaused []string
	f.env.RegisterDelayedCallback(func() { whilePaused = done() }, time.Hour)
	f.after(2*time.Hour, UpdateUnpause)
	f.env.ExecuteWorkflow(TrainRun, TrainRunInput{Run: "run-1", Recipe: "quickstart"})
	require.NoError(t, f.env.GetWorkflowError())
	require.Contains(t, whilePaused, "evaluate 1 step "+afterSteps(1))
	require.NotContains(t, whilePaused, "publish 2")
}

// A resumed run makes up for an evaluation that the run's end has cut off, and one that continues as new goes on with
// the evaluation that is due and with the prompts that are selected.
func TestEvaluationsThatAreDueAreNotLost(t *testing.T) {
	f := newFakes(t, apart(4, 2))
	f.next = 3
	done := f.journal()
	f.env.ExecuteWorkflow(TrainRun, TrainRunInput{Run: "run-1", Resume: true})
	require.NoError(t, f.env.GetWorkflowError())
	before(t, done(), "evaluate 2 step resumed", "publish 3")
	before(t, done(), "evaluate -1 warm_start warm", "evaluate 2 step resumed")

	long := newFakes(t, apart(stepsPerHistory+1, stepsPerHistory))
	long.env.ExecuteWorkflow(TrainRun, TrainRunInput{Run: "run-1", Recipe: "quickstart"})
	var again *workflow.ContinueAsNewError
	require.ErrorAs(t, long.env.GetWorkflowError(), &again)
	var in TrainRunInput
	require.NoError(t, json.Unmarshal(again.Input.Payloads[0].Data, &in))
	require.Equal(t, stepsPerHistory, in.Continued.Due.Input.Step)
	second := newFakes(t, api.Plan{})
	done = second.journal()
	second.env.ExecuteWorkflow(TrainRun, in)
	require.NoError(t, second.env.GetWorkflowError())
	require.Equal(t, []string{fmt.Sprintf("evaluate %d step %s", stepsPerHistory, afterSteps(stepsPerHistory)),
		fmt.Sprintf("publish %d", stepsPerHistory+1),
		fmt.Sprintf("evaluate %d final %s", stepsPerHistory+1, afterSteps(stepsPerHistory+1))}, done())
}

// A run that is stopped after a step that an evaluation would follow has the final one there alone.
func TestAStoppedRunEvaluatesItsLastStepOnce(t *testing.T) {
	f := newFakes(t, apart(9, 2))
	f.amends(func(in api.AmendInput) api.Plan {
		p := apart(2, 2)
		require.Equal(t, []string{"steps=2"}, in.Set)
		return p
	})
	done := f.journal()
	f.slowly()
	f.after(90*time.Second, UpdateStop)
	f.env.ExecuteWorkflow(TrainRun, TrainRunInput{Run: "run-1", Recipe: "quickstart"})
	require.NoError(t, f.env.GetWorkflowError())
	var out TrainRunResult
	require.NoError(t, f.env.GetWorkflowResult(&out))
	require.Equal(t, 2, out.Steps)
	evaluated := slices.DeleteFunc(done(), func(s string) bool { return s[:8] != "evaluate" })
	require.Equal(t, []string{"evaluate -1 warm_start warm", "evaluate 2 final " + afterSteps(2)}, evaluated)
}

// Prompts that were selected under other settings are selected again, under those that hold.
func TestPromptsAreSelectedAgainWhenSettingsChange(t *testing.T) {
	r := &trainRun{run: "r", next: 2, prepared: api.Prepared{Done: api.Done{Manifest: ref("config")}}}
	r.selected = &Selected{Step: 2, Config: ref("config"), Done: api.Done{Manifest: ref("prompts")}}
	in := func() (out TrainStepInput) {
		f := newFakes(t, api.Plan{})
		f.env.ExecuteWorkflow(func(ctx workflow.Context) error {
			out = r.stepInput(2)
			return nil
		})
		return out
	}
	require.Equal(t, ref("prompts"), in().Prompts.Manifest)
	r.prepared.Manifest = ref("amended")
	require.Nil(t, in().Prompts)
	r.prepared.Manifest, r.selected.Step = ref("config"), 3
	require.Nil(t, in().Prompts)
}

// What was selected before the step began is one of its stages and not part of its time.
func TestTimesBeforeAStepAreNotPartOfIt(t *testing.T) {
	var times timings
	times.early = []api.Timing{{Stage: "prompts", Start: 0, End: 500_000}}
	times.add(api.Timing{Stage: "rollout", Start: 2_000_000, End: 3_000_000})
	require.Equal(t, map[string]float64{"prompts": 0.5, "rollout": 1}, times.byStage())
	require.Equal(t, 1.0, times.span())
}
