package workflows

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"github.com/ropewalk/ropewalk/internal/step"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/schema/stages"
)

// fakes answers every activity as a committed stage would and counts the calls.
type fakes struct {
	env   *testsuite.TestWorkflowEnvironment
	mu    sync.Mutex // activities of several shards run at once
	calls map[string]int
	plan  api.Plan
	// toolTurns returns the number of turns in which each shard calls tools.
	toolTurns int
	next      int
	amended   []api.Amendment // amendments made before this workflow
	// nextAmendment is the first number that the record does not use.
	nextAmendment int
	noted         []api.StateInput // the states of the run, as the record notes them
}

func ref(name string, numbers ...int) schema.Ref {
	return schema.Ref{Key: fmt.Sprint(name, numbers), Digest: strings.Repeat("0", 64)}
}

// hangs is how long a test waits for what must happen. Only a test that hangs waits so long.
const hangs = 5 * time.Minute

// newEnvironment returns an environment that ends a workflow as hung after hangs. By default it would after three
// seconds, in which a busy machine may get nothing done.
func newEnvironment() *testsuite.TestWorkflowEnvironment {
	suite := &testsuite.WorkflowTestSuite{}
	suite.SetLogger(sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	env := suite.NewTestWorkflowEnvironment()
	env.SetTestTimeout(hangs)
	return env
}

func newFakes(t *testing.T, plan api.Plan) *fakes {
	t.Helper()
	f := &fakes{env: newEnvironment(), calls: map[string]int{}, plan: plan, toolTurns: 1, next: 1}
	Register(f.env)
	f.register()
	return f
}

func handle[I, O any](f *fakes, name string, body func(I) (O, error)) {
	f.env.RegisterActivityWithOptions(func(in I) (O, error) {
		f.mu.Lock()
		f.calls[name]++
		f.mu.Unlock()
		return body(in)
	}, activity.RegisterOptions{Name: name, DisableAlreadyRegisteredCheck: true})
}

func (f *fakes) register() {
	handle(f, api.PrepareRun, f.prepare)
	handle(f, api.WarmStart, f.warmStart)
	handle(f, api.SelectPrompts, func(in api.PromptsInput) (api.Done, error) {
		return api.Done{Manifest: ref("prompts", in.Step)}, nil
	})
	handle(f, api.GenerateRollouts, f.generate)
	handle(f, api.ExecuteToolCalls, func(in api.ToolsInput) (api.ToolsDone, error) {
		if want := (api.Past{Last: ref("turn", in.Step, in.Shard, in.Turn)}); !reflect.DeepEqual(in.Past, want) {
			return api.ToolsDone{}, fmt.Errorf("the calls of turn %d got the past %v", in.Turn, in.Past)
		}
		return api.ToolsDone{Done: api.Done{Manifest: ref("tools", in.Step, in.Shard, in.Turn)}}, nil
	})
	handle(f, api.AssembleTrajectories, func(in api.AssembleInput) (api.Done, error) {
		return api.Done{Manifest: ref("assembled", in.Step, in.Shard)}, nil
	})
	handle(f, api.ScoreRewards, f.score)
	handle(f, api.CommitStages, func(in api.CommitInput) (api.Committed, error) {
		return committed(in, f.plan, func(stage string, i int) schema.Ref { return ref(stage, in.Step, i) }), nil
	})
	handle(f, api.Resample, f.resample)
	handle(f, api.ComputeAdvantages, func(in api.StageInput) (api.Advantages, error) {
		return api.Advantages{Done: api.Done{Manifest: ref("batch", in.Step)}, Rows: 6}, nil
	})
	handle(f, api.UpdatePolicy, f.update)
	handle(f, api.PublishPolicy, func(in api.PublishInput) (api.Published, error) {
		return api.Published{Done: api.Done{Manifest: ref("publish", in.Step)}}, nil
	})
	handle(f, api.PruneCheckpoints, func(in api.PruneInput) (api.Pruned, error) {
		return api.Pruned{Retention: api.Retention{Rule: &api.RetentionRule{}, Past: in.Step}}, nil
	})
	handle(f, api.Evaluate, f.evaluate)
	handle(f, api.NoteState, func(in api.StateInput) (api.Done, error) {
		f.mu.Lock()
		f.noted = append(f.noted, in)
		f.mu.Unlock()
		return api.Done{}, nil
	})
	handle(f, api.RecordTimings, func(api.RecordTimingsInput) (api.Done, error) { return api.Done{}, nil })
}

// committed is the answer of CommitStages. It finds one turn behind rewards.
func committed(in api.CommitInput, plan api.Plan, name func(stage string, i int) schema.Ref) api.Committed {
	out := api.Committed{}
	for i, s := range in.Stages {
		out.Stages = append(out.Stages, api.StageRef{Stage: s.Stage, Ref: name(s.Stage, i)})
	}
	if len(in.Rewards) == 0 {
		return out
	}
	stages := []string{schema.StageRollout, schema.StageAssemble, schema.StageReward}
	if plan.Grade {
		stages = slices.Insert(stages, 2, schema.StageGrade)
	}
	if !plan.Interleaved { // whose fakes call no tools
		stages = slices.Insert(stages, 1, schema.StageSandbox)
	}
	for _, stage := range stages {
		out.Stages = append(out.Stages, api.StageRef{Stage: stage, Ref: name(stage, len(out.Stages))})
	}
	return out
}

func (f *fakes) prepare(api.PrepareInput) (api.Prepared, error) {
	p := api.Prepared{Done: api.Done{Manifest: ref("config")}, Plan: f.plan, NextStep: f.next, Amendments: f.amended,
		NextAmendment: f.nextAmendment}
	if f.next > 1 {
		p.Policy = &api.PolicyRef{Digest: "resumed"}
	}
	return p, nil
}

func (f *fakes) warmStart(api.Scope) (api.WarmStarted, error) {
	return api.WarmStarted{Policy: api.PolicyRef{Digest: "warm"}}, nil
}

func (f *fakes) generate(in api.GenerateInput) (api.Generated, error) {
	want := api.Past{}
	if in.Turn > 0 {
		want.Last = ref("tools", in.Step, in.Shard, in.Turn-1)
	}
	if !reflect.DeepEqual(in.Past, want) {
		return api.Generated{}, fmt.Errorf("turn %d got the past %v", in.Turn, in.Past)
	}
	out := api.Generated{Done: api.Done{Manifest: ref("turn", in.Step, in.Shard, in.Turn)}}
	if in.Turn < f.toolTurns+in.Shard {
		out.Calls = 3
	}
	return out, nil
}

func (f *fakes) score(in api.ScoreInput) (api.Scored, error) {
	return api.Scored{Done: api.Done{Manifest: ref("rewards", in.Step, in.Shard)}, Trajectories: 4, RewardSum: 1,
		Successes: 1, PositiveCalls: 4, PositiveErrors: 1}, nil
}

func (f *fakes) resample(in api.StageInput) (api.Resampled, error) {
	return api.Resampled{Done: api.Done{Manifest: ref("selection", in.Step)}, KeptGroups: 3, DroppedGroups: 1}, nil
}

func (f *fakes) update(in api.UpdateInput) (api.Updated, error) {
	return api.Updated{Done: api.Done{Manifest: ref("update", in.Step)},
		Policy: api.PolicyRef{Digest: fmt.Sprintf("%s+%d", in.Policy.Digest, in.Step)}}, nil
}

func (f *fakes) evaluate(in api.EvaluateInput) (api.Evaluated, error) {
	return api.Evaluated{Summary: api.EvaluationSummary{Rate: api.Rate{Success: float64(len(in.Policy.Digest)),
		N: 3}}}, nil
}

// amends answers the run's amendments with plans and lists the inputs.
func (f *fakes) amends(plan func(api.AmendInput) api.Plan) *[]api.AmendInput {
	asked := &[]api.AmendInput{}
	handle(f, api.AmendRecipe, func(in api.AmendInput) (api.Amended, error) {
		*asked = append(*asked, in)
		return api.Amended{Amendment: api.Amendment{Manifest: ref("amended", in.Number), Plan: plan(in),
			From: in.From, Gen: map[bool]int{true: 1}[in.Rerun]}}, nil
	})
	return asked
}

func TestTrainRunTakesEveryStepOnThePolicyOfTheOneBefore(t *testing.T) {
	f := newFakes(t, api.Plan{Recipe: "r", Steps: 3, Shards: 2, MaxTurns: 3})
	f.env.ExecuteWorkflow(TrainRun, TrainRunInput{Run: "run-1", Recipe: "quickstart"})
	require.NoError(t, f.env.GetWorkflowError())
	var out TrainRunResult
	require.NoError(t, f.env.GetWorkflowResult(&out))
	require.Equal(t, "warm+1+2+3", out.Policy.Digest)
	require.Equal(t, 2, f.calls[api.Evaluate])
	// Shard 0 calls tools in one turn and shard 1 in two, so they generate two and three turns.
	require.Equal(t, 3*5, f.calls[api.GenerateRollouts])
	require.Equal(t, 3*3, f.calls[api.ExecuteToolCalls])
	require.Equal(t, 3, f.calls[api.PublishPolicy])
	require.Equal(t, float64(len("warm")), out.Warm.Success)
}

func TestTrainRunEvaluatesBetweenStepsWhereTheRecipeSays(t *testing.T) {
	f := newFakes(t, api.Plan{Recipe: "r", Steps: 5, Shards: 1, MaxTurns: 1, EvaluateEvery: 2})
	f.env.ExecuteWorkflow(TrainRun, TrainRunInput{Run: "run-1", Recipe: "quickstart"})
	require.NoError(t, f.env.GetWorkflowError())
	require.Equal(t, 2+2, f.calls[api.Evaluate]) // before training, after steps 2 and 4, after the last step
}

// A policy before the warm start is measured only where the warm start returns one; the rest of the run is the same.
func TestTrainRunMeasuresTheInitialPolicy(t *testing.T) {
	f := newFakes(t, api.Plan{Recipe: "r", Steps: 1, Shards: 1, MaxTurns: 1, Needs: stages.Needs{Initial: true}})
	handle(f, api.WarmStart, func(api.Scope) (api.WarmStarted, error) {
		return api.WarmStarted{Policy: api.PolicyRef{Digest: "warm"}, Initial: &api.PolicyRef{Digest: "raw"}}, nil
	})
	var asked []api.EvaluateInput
	handle(f, api.EvaluateInitial, func(in api.EvaluateInput) (api.Evaluated, error) {
		asked = append(asked, in)
		return f.evaluate(in)
	})
	f.env.ExecuteWorkflow(TrainRun, TrainRunInput{Run: "run-1", Recipe: "quickstart"})
	require.NoError(t, f.env.GetWorkflowError())
	var out TrainRunResult
	require.NoError(t, f.env.GetWorkflowResult(&out))
	require.Equal(t, "warm+1", out.Policy.Digest)
	require.Equal(t, float64(len("warm")), out.Warm.Success)
	require.Len(t, asked, 1)
	require.Equal(t, []any{"raw", "initial", api.InitStep},
		[]any{asked[0].Policy.Digest, asked[0].Tag, asked[0].Step})
	require.Equal(t, 2, f.calls[api.Evaluate])
}

func TestTrainRunResumesAfterTheLastHead(t *testing.T) {
	f := newFakes(t, api.Plan{Recipe: "r", Steps: 3, Shards: 1, MaxTurns: 1})
	f.next = 3
	f.env.ExecuteWorkflow(TrainRun, TrainRunInput{Run: "run-1", Resume: true})
	require.NoError(t, f.env.GetWorkflowError())
	var out TrainRunResult
	require.NoError(t, f.env.GetWorkflowResult(&out))
	require.Equal(t, "resumed+3", out.Policy.Digest)
	require.Equal(t, 1, f.calls[api.SelectPrompts])
}

func TestTrainRunContinuesAsNewWithItsState(t *testing.T) {
	f := newFakes(t, api.Plan{Recipe: "r", Steps: stepsPerHistory + 1, Shards: 1, MaxTurns: 1})
	f.env.ExecuteWorkflow(TrainRun, TrainRunInput{Run: "run-1", Recipe: "quickstart"})
	var again *workflow.ContinueAsNewError
	require.ErrorAs(t, f.env.GetWorkflowError(), &again)
	var in TrainRunInput
	require.NoError(t, json.Unmarshal(again.Input.Payloads[0].Data, &in))
	require.NotNil(t, in.Continued)
	require.Equal(t, stepsPerHistory+1, in.Continued.Next)
	require.Len(t, in.Continued.Lines, linesKept)

	second := newFakes(t, api.Plan{})
	second.env.ExecuteWorkflow(TrainRun, in)
	require.NoError(t, second.env.GetWorkflowError())
	require.Zero(t, second.calls[api.PrepareRun])
	require.Equal(t, 1, second.calls[api.UpdatePolicy])
}

// refuses requires that a workflow fails because of its input, before it does anything.
func (f *fakes) refuses(t *testing.T, workflow, input, want string) {
	t.Helper()
	f.env.ExecuteWorkflow(workflow, json.RawMessage(input))
	var failure *temporal.ApplicationError
	require.ErrorAs(t, f.env.GetWorkflowError(), &failure)
	require.Equal(t, api.FailBadInput, failure.Type())
	require.True(t, failure.NonRetryable())
	require.Contains(t, failure.Message(), want)
	require.Empty(t, f.calls)
}

func TestTrainRunRefusesBadInputAtOnce(t *testing.T) {
	for name, c := range map[string]struct{ json, want string }{
		"unknown field":   {`{"recipe":"quickstart","stepz":3}`, `unknown field "stepz"`},
		"wrong type":      {`{"recipe":"quickstart","seed":"one"}`, "seed: must be a whole number, got a text"},
		"no recipe":       {`{}`, "recipe: name a built-in recipe"},
		"two recipes":     {`{"recipe":"a","recipe_yaml":"b"}`, "give one of them"},
		"resume and more": {`{"run_id":"x","resume":true,"recipe":"a"}`, "must be left out"},
		"bad run id":      {`{"recipe":"quickstart","run_id":"../x"}`, "run_id: must match"},
	} {
		t.Run(name, func(t *testing.T) {
			newFakes(t, api.Plan{Steps: 1, Shards: 1, MaxTurns: 1}).refuses(t, TrainRunName, c.json, c.want)
		})
	}
}

func TestTrainRunSaysWhatFailedWhereAndHowToGoOn(t *testing.T) {
	f := newFakes(t, api.Plan{Recipe: "r", Steps: 2, Shards: 1, MaxTurns: 1})
	f.env.OnActivity(api.UpdatePolicy, mock.Anything, mock.Anything).Return(api.Updated{},
		temporal.NewNonRetryableApplicationError("non-finite value in model.norm.weight", api.FailNonFinite, nil))
	f.after(time.Hour, UpdateAbort)
	f.env.ExecuteWorkflow(TrainRun, TrainRunInput{Run: "run-1", Recipe: "quickstart"})
	var failure *temporal.ApplicationError
	require.ErrorAs(t, f.env.GetWorkflowError(), &failure)
	require.Equal(t, api.FailNonFinite, failure.Type())
	require.Contains(t, failure.Message(), "step 1")
	require.Contains(t, failure.Message(), "UpdatePolicy: non-finite value in model.norm.weight")
	require.Contains(t, failure.Message(), "ropewalk resume run-1")
}

func TestTrainStepRetriesPassingFaults(t *testing.T) {
	f := newFakes(t, api.Plan{Recipe: "r", Steps: 1, Shards: 1, MaxTurns: 1})
	failures := 2
	f.env.OnActivity(api.Resample, mock.Anything, mock.Anything).Return(func(in api.StageInput) (api.Resampled,
		error) {
		if failures--; failures >= 0 {
			return api.Resampled{}, errors.New("the store is away")
		}
		return api.Resampled{Done: api.Done{Manifest: ref("selection")}}, nil
	})
	f.env.ExecuteWorkflow(TrainRun, TrainRunInput{Run: "run-1", Recipe: "quickstart"})
	require.NoError(t, f.env.GetWorkflowError())
	require.Equal(t, -1, failures)
}

func TestProgressQueryShowsTheSteps(t *testing.T) {
	f := newFakes(t, api.Plan{Recipe: "r", Seed: 7, Steps: 2, Shards: 2, MaxTurns: 1})
	f.env.ExecuteWorkflow(TrainRun, TrainRunInput{Run: "run-1", Recipe: "quickstart"})
	require.NoError(t, f.env.GetWorkflowError())
	value, err := f.env.QueryWorkflow(QueryProgress)
	require.NoError(t, err)
	var p Progress
	require.NoError(t, value.Get(&p))
	require.Len(t, p.Lines, 2)
	require.Equal(t, 0.25, p.Lines[1].Reward)
	require.Equal(t, 0.25, p.Lines[1].ToolErrorPositive)
	require.Equal(t, "done", p.Stage)
	text := p.Markdown()
	require.Contains(t, text, "| 2 | 0.250 | 25.0% |")
	require.NotContains(t, text, "excluded")
	require.Less(t, len(text), 20_000)
}

func TestProgressShowsWhatWasExcluded(t *testing.T) {
	p := Progress{Lines: []StepLine{{Step: 1}, {Step: 2, Excluded: 3}}}
	text := p.Markdown()
	require.Contains(t, text, "| grad | excluded |\n")
	require.Regexp(t, `\| 1 \|.* 0 \|\n`, text)
	require.Regexp(t, `\| 2 \|.* 3 \|\n`, text)
	require.Contains(t, text, "| step | tool errors | advantage | KL | clip | grad | excluded |\n"+
		"|--:|--:|--:|--:|--:|--:|--:|\n")
}

func TestStepLineCountsExclusions(t *testing.T) {
	s := &trainStep{runner: &runner{times: &timings{}}}
	out := step.Out{Sampled: step.Sampled{Shards: []api.Episodes{{
		Scored: api.Scored{Trajectories: 6, RewardSum: 3, Successes: 3, Excluded: 2}}}}}
	out.Learnt.Resampled.Reasons = map[string]int{schema.ReasonExcluded: 10}
	line := s.line(out)
	require.Equal(t, 10, line.Excluded, "skipped shards count, which no other shard has")
	require.Equal(t, 6, line.Trajectories)
	require.Equal(t, 0.5, line.Reward, "the mean is over the trajectories with a reward")
}

func TestTimingsCountOverlapOnce(t *testing.T) {
	var times timings
	times.add(
		api.Timing{Stage: "rollout", Start: 1_000_000, End: 3_000_000},
		api.Timing{Stage: "rollout", Start: 2_000_000, End: 4_000_000},
		api.Timing{Stage: "rollout", Start: 6_000_000, End: 7_000_000},
		api.Timing{Stage: "sandbox", Start: 2_500_000, End: 2_750_000},
	)
	require.Equal(t, map[string]float64{"rollout": 4, "sandbox": 0.25}, times.byStage())
	require.Equal(t, 6.0, times.span())
}
