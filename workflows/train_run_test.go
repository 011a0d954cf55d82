package workflows

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
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

	"github.com/ropewalk/ropewalk/activities/wire"
	"github.com/ropewalk/ropewalk/schema"
)

// fakes answers every activity the way a committed stage would and counts the calls.
type fakes struct {
	env   *testsuite.TestWorkflowEnvironment
	mu    sync.Mutex // shards' activities run at once
	calls map[string]int
	plan  wire.Plan
	// toolTurns is how many turns of each shard call tools.
	toolTurns int
	next      int
	amended   []wire.Amendment // before this workflow
}

func ref(name string, numbers ...int) schema.Ref {
	return schema.Ref{Key: fmt.Sprint(name, numbers), Digest: strings.Repeat("0", 64)}
}

func newFakes(t *testing.T, plan wire.Plan) *fakes {
	t.Helper()
	suite := &testsuite.WorkflowTestSuite{}
	suite.SetLogger(sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	f := &fakes{env: suite.NewTestWorkflowEnvironment(), calls: map[string]int{}, plan: plan, toolTurns: 1, next: 1}
	f.env.RegisterWorkflowWithOptions(TrainRun, workflow.RegisterOptions{Name: TrainRunName})
	f.env.RegisterWorkflowWithOptions(TrainStep, workflow.RegisterOptions{Name: TrainStepName})
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
	handle(f, wire.PrepareRun, f.prepare)
	handle(f, wire.WarmStart, f.warmStart)
	handle(f, wire.SelectPrompts, func(in wire.PromptsInput) (wire.Done, error) {
		return wire.Done{Manifest: ref("prompts", in.Step)}, nil
	})
	handle(f, wire.GenerateRollouts, f.generate)
	handle(f, wire.ExecuteToolCalls, func(in wire.ToolsInput) (wire.ToolsDone, error) {
		if len(in.Turns) != in.Turn+1 {
			return wire.ToolsDone{}, fmt.Errorf("turn %d got %d turns", in.Turn, len(in.Turns))
		}
		return wire.ToolsDone{Done: wire.Done{Manifest: ref("tools", in.Step, in.Shard, in.Turn)}}, nil
	})
	handle(f, wire.AssembleTrajectories, func(in wire.AssembleInput) (wire.Done, error) {
		return wire.Done{Manifest: ref("assembled", in.Step, in.Shard)}, nil
	})
	handle(f, wire.ScoreRewards, f.score)
	handle(f, wire.CommitStages, func(in wire.CommitInput) (wire.Committed, error) {
		out := wire.Committed{}
		for i, s := range in.Stages {
			out.Refs = append(out.Refs, ref(s.Stage, in.Step, i))
		}
		return out, nil
	})
	handle(f, wire.Resample, f.resample)
	handle(f, wire.ComputeAdvantages, func(in wire.AdvantageInput) (wire.Advantages, error) {
		return wire.Advantages{Done: wire.Done{Manifest: ref("batch", in.Step)}, Rows: 6}, nil
	})
	handle(f, wire.UpdatePolicy, f.update)
	handle(f, wire.PublishPolicy, func(in wire.PublishInput) (wire.Published, error) {
		return wire.Published{Done: wire.Done{Manifest: ref("publish", in.Step)}}, nil
	})
	handle(f, wire.Evaluate, f.evaluate)
	handle(f, wire.RecordTimings, func(wire.RecordTimingsInput) (wire.Done, error) { return wire.Done{}, nil })
}

func (f *fakes) prepare(wire.PrepareInput) (wire.Prepared, error) {
	p := wire.Prepared{Done: wire.Done{Manifest: ref("config")}, Plan: f.plan, NextStep: f.next, Amendments: f.amended}
	if f.next > 1 {
		p.Policy = &wire.PolicyRef{Digest: "resumed"}
	}
	return p, nil
}

func (f *fakes) warmStart(wire.Scope) (wire.WarmStarted, error) {
	return wire.WarmStarted{Policy: wire.PolicyRef{Digest: "warm"}}, nil
}

func (f *fakes) generate(in wire.GenerateInput) (wire.Generated, error) {
	if len(in.Turns) != in.Turn || len(in.Tools) != in.Turn {
		return wire.Generated{}, fmt.Errorf("turn %d got %d turns and %d tool shards", in.Turn, len(in.Turns), len(in.Tools))
	}
	out := wire.Generated{Done: wire.Done{Manifest: ref("turn", in.Step, in.Shard, in.Turn)}}
	if in.Turn < f.toolTurns+in.Shard {
		out.Calls = 3
	}
	return out, nil
}

func (f *fakes) score(in wire.ScoreInput) (wire.Scored, error) {
	return wire.Scored{Done: wire.Done{Manifest: ref("rewards", in.Step, in.Shard)}, Trajectories: 4, RewardSum: 1, Successes: 1, PositiveCalls: 4, PositiveErrors: 1}, nil
}

func (f *fakes) resample(in wire.ResampleInput) (wire.Resampled, error) {
	return wire.Resampled{Done: wire.Done{Manifest: ref("selection", in.Step)}, KeptGroups: 3, DroppedGroups: 1}, nil
}

func (f *fakes) update(in wire.UpdateInput) (wire.Updated, error) {
	return wire.Updated{Done: wire.Done{Manifest: ref("update", in.Step)}, Policy: wire.PolicyRef{Digest: fmt.Sprintf("%s+%d", in.Policy.Digest, in.Step)}}, nil
}

func (f *fakes) evaluate(in wire.EvaluateInput) (wire.Evaluated, error) {
	return wire.Evaluated{Summary: wire.EvaluationSummary{Rate: wire.Rate{Success: float64(len(in.Policy.Digest)), N: 3}}}, nil
}

// amends answers the run's amendments with plans and lists what was asked for.
func (f *fakes) amends(plan func(wire.AmendInput) wire.Plan) *[]wire.AmendInput {
	asked := &[]wire.AmendInput{}
	handle(f, wire.AmendRecipe, func(in wire.AmendInput) (wire.Amended, error) {
		*asked = append(*asked, in)
		return wire.Amended{Amendment: wire.Amendment{Manifest: ref("amended", in.Number), Plan: plan(in), From: in.From, Gen: map[bool]int{true: 1}[in.Anew]}}, nil
	})
	return asked
}

func TestTrainRunTakesEveryStepOnThePolicyOfTheOneBefore(t *testing.T) {
	f := newFakes(t, wire.Plan{Recipe: "r", Steps: 3, Shards: 2, MaxTurns: 3})
	f.env.ExecuteWorkflow(TrainRun, TrainRunInput{Run: "run-1", Recipe: "quickstart"})
	require.NoError(t, f.env.GetWorkflowError())
	var out TrainRunResult
	require.NoError(t, f.env.GetWorkflowResult(&out))
	require.Equal(t, "warm+1+2+3", out.Policy.Digest)
	require.Equal(t, 2, f.calls[wire.Evaluate])
	// Shard 0 calls tools in one turn and shard 1 in two, so they generate two and three turns.
	require.Equal(t, 3*5, f.calls[wire.GenerateRollouts])
	require.Equal(t, 3*3, f.calls[wire.ExecuteToolCalls])
	require.Equal(t, 3, f.calls[wire.PublishPolicy])
	require.Equal(t, float64(len("warm")), out.Warm.Success)
}

func TestTrainRunEvaluatesBetweenStepsWhereTheRecipeSays(t *testing.T) {
	f := newFakes(t, wire.Plan{Recipe: "r", Steps: 5, Shards: 1, MaxTurns: 1, EvaluateEvery: 2})
	f.env.ExecuteWorkflow(TrainRun, TrainRunInput{Run: "run-1", Recipe: "quickstart"})
	require.NoError(t, f.env.GetWorkflowError())
	require.Equal(t, 2+2, f.calls[wire.Evaluate]) // before, after steps 2 and 4, after the last
}

func TestTrainRunResumesAfterTheLastHead(t *testing.T) {
	f := newFakes(t, wire.Plan{Recipe: "r", Steps: 3, Shards: 1, MaxTurns: 1})
	f.next = 3
	f.env.ExecuteWorkflow(TrainRun, TrainRunInput{Run: "run-1", Resume: true})
	require.NoError(t, f.env.GetWorkflowError())
	var out TrainRunResult
	require.NoError(t, f.env.GetWorkflowResult(&out))
	require.Equal(t, "resumed+3", out.Policy.Digest)
	require.Equal(t, 1, f.calls[wire.SelectPrompts])
}

func TestTrainRunContinuesAsNewWithItsState(t *testing.T) {
	f := newFakes(t, wire.Plan{Recipe: "r", Steps: stepsPerHistory + 1, Shards: 1, MaxTurns: 1})
	f.env.ExecuteWorkflow(TrainRun, TrainRunInput{Run: "run-1", Recipe: "quickstart"})
	var again *workflow.ContinueAsNewError
	require.ErrorAs(t, f.env.GetWorkflowError(), &again)
	var in TrainRunInput
	require.NoError(t, json.Unmarshal(again.Input.Payloads[0].Data, &in))
	require.NotNil(t, in.Continued)
	require.Equal(t, stepsPerHistory+1, in.Continued.Next)
	require.Len(t, in.Continued.Lines, linesKept)

	second := newFakes(t, wire.Plan{})
	second.env.ExecuteWorkflow(TrainRun, in)
	require.NoError(t, second.env.GetWorkflowError())
	require.Zero(t, second.calls[wire.PrepareRun])
	require.Equal(t, 1, second.calls[wire.UpdatePolicy])
}

// refuses requires that a workflow fails for its input, before anything is done.
func (f *fakes) refuses(t *testing.T, workflow, input, want string) {
	t.Helper()
	f.env.ExecuteWorkflow(workflow, json.RawMessage(input))
	var failure *temporal.ApplicationError
	require.ErrorAs(t, f.env.GetWorkflowError(), &failure)
	require.Equal(t, wire.FailBadInput, failure.Type())
	require.True(t, failure.NonRetryable())
	require.Contains(t, failure.Message(), want)
	require.Empty(t, f.calls)
}

func TestTrainRunRefusesBadInputAtOnce(t *testing.T) {
	for name, c := range map[string]struct{ json, want string }{
		"unknown field":   {`{"recipe":"quickstart","stepz":3}`, `unknown field "stepz"`},
		"wrong type":      {`{"recipe":"quickstart","seed":"one"}`, "seed: must be a uint64, got a string"},
		"no recipe":       {`{}`, "recipe: name a built-in recipe"},
		"two recipes":     {`{"recipe":"a","recipe_yaml":"b"}`, "give one of them"},
		"resume and more": {`{"run_id":"x","resume":true,"recipe":"a"}`, "must be left out"},
		"bad run id":      {`{"recipe":"quickstart","run_id":"../x"}`, "run_id: must match"},
	} {
		t.Run(name, func(t *testing.T) {
			newFakes(t, wire.Plan{Steps: 1, Shards: 1, MaxTurns: 1}).refuses(t, TrainRunName, c.json, c.want)
		})
	}
}

func TestTrainRunSaysWhatFailedWhereAndHowToGoOn(t *testing.T) {
	f := newFakes(t, wire.Plan{Recipe: "r", Steps: 2, Shards: 1, MaxTurns: 1})
	f.env.OnActivity(wire.UpdatePolicy, mock.Anything, mock.Anything).Return(wire.Updated{},
		temporal.NewNonRetryableApplicationError("non-finite value in model.norm.weight", wire.FailNonFinite, nil))
	f.after(time.Hour, UpdateAbort)
	f.env.ExecuteWorkflow(TrainRun, TrainRunInput{Run: "run-1", Recipe: "quickstart"})
	var failure *temporal.ApplicationError
	require.ErrorAs(t, f.env.GetWorkflowError(), &failure)
	require.Equal(t, wire.FailNonFinite, failure.Type())
	require.Contains(t, failure.Message(), "step 1")
	require.Contains(t, failure.Message(), "UpdatePolicy: non-finite value in model.norm.weight")
	require.Contains(t, failure.Message(), "ropewalk resume run-1")
}

func TestTrainStepRetriesPassingFaults(t *testing.T) {
	f := newFakes(t, wire.Plan{Recipe: "r", Steps: 1, Shards: 1, MaxTurns: 1})
	failures := 2
	f.env.OnActivity(wire.Resample, mock.Anything, mock.Anything).Return(func(in wire.ResampleInput) (wire.Resampled, error) {
		if failures--; failures >= 0 {
			return wire.Resampled{}, errors.New("the store is away")
		}
		return wire.Resampled{Done: wire.Done{Manifest: ref("selection")}}, nil
	})
	f.env.ExecuteWorkflow(TrainRun, TrainRunInput{Run: "run-1", Recipe: "quickstart"})
	require.NoError(t, f.env.GetWorkflowError())
	require.Equal(t, -1, failures)
}

func TestProgressQueryShowsTheSteps(t *testing.T) {
	f := newFakes(t, wire.Plan{Recipe: "r", Seed: 7, Steps: 2, Shards: 2, MaxTurns: 1})
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
	require.Contains(t, text, "| seconds | excluded |\n")
	require.Regexp(t, `\| 1 \|.* 0 \|\n`, text)
	require.Regexp(t, `\| 2 \|.* 3 \|\n`, text)
	var rule string
	for _, line := range strings.Split(text, "\n") {
		if strings.HasPrefix(line, "|--:|") {
			rule = line
		}
	}
	require.Equal(t, strings.Count("| step | reward | success | tool errors | groups | entropy | KL | clip | grad norm | seconds | excluded |", "|"), strings.Count(rule, "|"))
}

func TestStepLineCountsExclusions(t *testing.T) {
	s := &trainStep{}
	lanes := []lane{{scored: wire.Scored{Trajectories: 6, RewardSum: 3, Successes: 3, Excluded: 2}}}
	line := s.line(lanes, wire.Resampled{Reasons: map[string]int{schema.ReasonExcluded: 10}}, wire.Updated{})
	require.Equal(t, 10, line.Excluded, "skipped shards count, which no lane has")
	require.Equal(t, 6, line.Trajectories)
	require.Equal(t, 0.5, line.Reward, "the mean is over the trajectories with a reward")
}

func TestStagePartsKeepsTurnsApart(t *testing.T) {
	lanes := []lane{
		{turns: []schema.Ref{ref("a0")}, assembled: ref("aa"), scored: wire.Scored{Done: wire.Done{Manifest: ref("ar")}}},
		{turns: []schema.Ref{ref("b0"), ref("b1")}, tools: []schema.Ref{ref("bt0")}, assembled: ref("ba"), scored: wire.Scored{Done: wire.Done{Manifest: ref("br")}}},
	}
	var got []string
	for _, p := range stageParts(lanes) {
		var keys []string
		for _, r := range p.Parts {
			keys = append(keys, strings.TrimSuffix(r.Key, "[]"))
		}
		got = append(got, fmt.Sprintf("%s %d %s", p.Stage, p.Turn, strings.Join(keys, ",")))
	}
	require.Equal(t, []string{"rollout 0 a0,b0", "sandbox 0 bt0", "rollout 1 b1", "assemble -1 aa,ba", "reward -1 ar,br"}, got)
}

func TestTimingsCountOverlapOnce(t *testing.T) {
	var times timings
	times.add(
		wire.Timing{Stage: "rollout", Start: 1_000_000, End: 3_000_000},
		wire.Timing{Stage: "rollout", Start: 2_000_000, End: 4_000_000},
		wire.Timing{Stage: "rollout", Start: 6_000_000, End: 7_000_000},
		wire.Timing{Stage: "sandbox", Start: 2_500_000, End: 2_750_000},
	)
	require.Equal(t, map[string]float64{"rollout": 4, "sandbox": 0.25}, times.byStage())
	require.Equal(t, 6.0, times.span())
}
