package workflows

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/schema"
)

// experimented is an experiment with faked trials.
type experimented struct {
	*fakes
	plan    api.PlannedExperiment
	started []string // RUN or RUN@UNTIL
	deeds   []string
	open    int // trials that run now
	most    int // that ran at once
	// train is what a trial does; nil: it takes its ten steps.
	train func(ctx workflow.Context, in TrainRunInput) (TrainRunResult, error)
}

func newExperimented(t *testing.T, plan api.PlannedExperiment) *experimented {
	t.Helper()
	x := &experimented{fakes: newFakes(t, api.Plan{}), plan: plan}
	handle(x.fakes, api.PlanExperiment, func(api.PlanExperimentInput) (api.PlannedExperiment, error) {
		return x.plan, nil
	})
	handle(x.fakes, api.NoteDeed, func(in api.DeedInput) (api.Done, error) {
		x.mu.Lock()
		defer x.mu.Unlock()
		x.deeds = append(x.deeds, in.Actor+" "+in.Action+" "+in.Run)
		return api.Done{}, nil
	})
	x.env.OnWorkflow(TrainRunName, mock.Anything, mock.Anything).Return(
		func(ctx workflow.Context, in TrainRunInput) (TrainRunResult, error) {
			name := in.Run
			if in.Until > 0 {
				name = fmt.Sprintf("%s@%d", in.Run, in.Until)
			}
			x.started = append(x.started, name)
			x.open++
			x.most = max(x.most, x.open)
			defer func() { x.open-- }()
			if x.train != nil {
				return x.train(ctx, in)
			}
			if err := workflow.Sleep(ctx, time.Minute); err != nil {
				return TrainRunResult{}, err
			}
			return TrainRunResult{Run: in.Run, Steps: max(in.Until, 0), Held: in.Until > 0}, nil
		})
	return x
}

// trialsNamed are trials of a built-in recipe, one for each name.
func trialsNamed(names ...string) (out []api.Trial) {
	for _, n := range names {
		out = append(out, api.Trial{Run: n, Arm: n, Seed: 1, Recipe: "quickstart", Steps: 10})
	}
	return out
}

func (x *experimented) execute(in ExperimentInput) (out ExperimentState, err error) {
	in.Name = "experiment-x"
	if in.YAML == "" {
		in.YAML = "name: x"
	}
	x.env.ExecuteWorkflow(Experiment, in)
	if err := x.env.GetWorkflowError(); err != nil {
		return out, err
	}
	return out, x.env.GetWorkflowResult(&out)
}

func trialStates(s ExperimentState) string {
	var all []string
	for _, t := range s.Trials {
		all = append(all, t.Run+" "+t.State)
	}
	return strings.Join(all, ", ")
}

// Trials that are done are skipped, the others run two at once, and each start is noted.
func TestAnExperimentTrainsWhatIsNotDone(t *testing.T) {
	plan := api.PlannedExperiment{Name: "x", Trials: trialsNamed("a", "b", "c", "d"), Parallel: 2, Holds: []int{0}}
	plan.Trials[1].Done = true
	x := newExperimented(t, plan)
	out, err := x.execute(ExperimentInput{})
	require.NoError(t, err)
	require.Equal(t, "a done, b done, c done, d done", trialStates(out))
	require.ElementsMatch(t, []string{"a", "c", "d"}, x.started)
	require.ElementsMatch(t, []string{"experiment x start a", "experiment x start c", "experiment x start d"}, x.deeds)
	require.Equal(t, 2, x.most)
}

// A trial gets the text of its recipe, settings and seed.
func TestATrialsInput(t *testing.T) {
	plan := api.PlannedExperiment{Name: "x", Trials: trialsNamed("a", "b"), Parallel: 1, Holds: []int{0}}
	plan.Trials[0].Recipe, plan.Trials[0].Set, plan.Trials[0].Seed = "own.yaml", []string{"steps=3"}, 7
	x := newExperimented(t, plan)
	var got []TrainRunInput
	x.train = func(_ workflow.Context, in TrainRunInput) (TrainRunResult, error) {
		got = append(got, in)
		return TrainRunResult{}, nil
	}
	_, err := x.execute(ExperimentInput{ExperimentFile: api.ExperimentFile{YAML: "name: x",
		Recipes: map[string]string{"own.yaml": "text"}}})
	require.NoError(t, err)
	seven, one := uint64(7), uint64(1)
	require.Equal(t, []TrainRunInput{
		{Run: "a", RecipeYAML: "text", RecipeFile: "own.yaml", Set: []string{"steps=3"}, Seed: &seven},
		{Run: "b", Recipe: "quickstart", Seed: &one},
	}, got)
}

// At each hold the stop rule ends trials, and the others go on.
func TestTheStopRuleEndsTrials(t *testing.T) {
	x := newExperimented(t, api.PlannedExperiment{Name: "x", Trials: trialsNamed("a", "b", "c"), Parallel: 3,
		Holds: []int{2, 4, 0}})
	var judged []api.JudgeTrialsInput
	handle(x.fakes, api.JudgeTrials, func(in api.JudgeTrialsInput) (api.JudgedTrials, error) {
		judged = append(judged, in)
		return api.JudgedTrials{Ended: map[string]string{in.Runs[len(in.Runs)-1]: "too low"}}, nil
	})
	out, err := x.execute(ExperimentInput{})
	require.NoError(t, err)
	require.Equal(t, "a done, b stopped, c stopped", trialStates(out))
	require.Equal(t, TrialState{Run: "b", Arm: "b", Seed: 1, State: TrialStopped, Step: 4, Reason: "too low"},
		out.Trials[1])
	require.ElementsMatch(t, []string{"a@2", "b@2", "c@2", "a@4", "b@4", "a"}, x.started)
	require.Len(t, x.deeds, 3, "a trial that goes on is not noted again")
	require.Len(t, judged, 2)
	require.Equal(t, []string{"a", "b"}, judged[1].Runs)
}

// A trial that fails does not end the others.
func TestAFailedTrialIsReported(t *testing.T) {
	x := newExperimented(t, api.PlannedExperiment{Name: "x", Trials: trialsNamed("a", "b", "c"), Parallel: 1,
		Holds: []int{0}})
	x.train = func(_ workflow.Context, in TrainRunInput) (TrainRunResult, error) {
		switch in.Run {
		case "a":
			return TrainRunResult{}, temporal.NewNonRetryableApplicationError("no such file", api.FailBadInput, nil)
		case "b":
			return TrainRunResult{}, temporal.NewCanceledError()
		}
		return TrainRunResult{}, nil
	}
	out, err := x.execute(ExperimentInput{})
	require.NoError(t, err)
	require.Equal(t, "a failed, b failed, c done", trialStates(out))
	require.Equal(t, "no such file", out.Trials[0].Reason)
	require.Equal(t, "the trial was cancelled", out.Trials[1].Reason)
}

// A paused experiment starts no other trial.
func TestAPausedExperiment(t *testing.T) {
	x := newExperimented(t, api.PlannedExperiment{Name: "x", Trials: trialsNamed("a", "b"), Parallel: 1,
		Holds: []int{0}})
	paused, again := x.after(30*time.Second, UpdatePause), x.after(40*time.Second, UpdatePause)
	x.env.RegisterDelayedCallback(func() {
		require.Equal(t, []string{"a"}, x.started)
		value, err := x.env.QueryWorkflow(QueryTrials)
		require.NoError(t, err)
		var state ExperimentState
		require.NoError(t, value.Get(&state))
		require.True(t, state.Paused)
		require.Equal(t, "a done, b waiting", trialStates(state))
	}, time.Hour)
	unpaused := x.after(2*time.Hour, UpdateUnpause)
	out, err := x.execute(ExperimentInput{})
	require.NoError(t, err)
	require.Equal(t, "a done, b done", trialStates(out))
	require.NoError(t, errors.Join(paused.rejected, paused.failed, unpaused.rejected, unpaused.failed))
	require.ErrorContains(t, again.rejected, "the experiment is in that state already")
}

// An experiment of many trials continues as new when no trial runs, with all states.
func TestManyTrialsContinueAsNew(t *testing.T) {
	var names []string
	for i := range trialsPerHistory + 1 {
		names = append(names, fmt.Sprintf("t%d", i))
	}
	x := newExperimented(t, api.PlannedExperiment{Name: "x", Trials: trialsNamed(names...), Parallel: 50,
		Holds: []int{0}})
	_, err := x.execute(ExperimentInput{})
	var next *workflow.ContinueAsNewError
	require.True(t, errors.As(err, &next), "%v", err)
	require.Len(t, x.started, trialsPerHistory)
}

// A run that is held ends between two steps with what was due, and says so.
func TestARunIsHeld(t *testing.T) {
	f := newFakes(t, api.Plan{Recipe: "r", Steps: 5, Shards: 1, MaxTurns: 1, EvaluateEvery: 1})
	f.env.ExecuteWorkflow(TrainRun, TrainRunInput{Run: "r", Recipe: "quickstart", Until: 2})
	require.NoError(t, f.env.GetWorkflowError())
	var out TrainRunResult
	require.NoError(t, f.env.GetWorkflowResult(&out))
	require.True(t, out.Held)
	require.Equal(t, 2, out.Steps)
	require.Equal(t, 2, f.calls[api.UpdatePolicy]+f.calls[api.UpdateAndPublish])
	require.Equal(t, 3, f.calls[api.Evaluate], "the warm start and both steps")
	last := f.noted[len(f.noted)-1]
	require.Equal(t, schema.StateInterrupted, last.State)
	require.Equal(t, "its experiment holds it after step 2", last.Reason)
}
