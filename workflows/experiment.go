package workflows

import (
	"fmt"
	"strings"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/schema"
)

// ExperimentInput starts an experiment. From the UI's form it has experiment_yaml alone, whose recipes are built in.
type ExperimentInput struct {
	// Name is the workflow's id unless it is given.
	Name string `json:"name,omitempty"`
	api.ExperimentFile
	// Continued carries the state over a continue-as-new; no one else sets it.
	Continued *ContinuedExperiment `json:"continued,omitempty"`

	invalid string
}

// ContinuedExperiment is what Experiment carries into its next history.
type ContinuedExperiment struct {
	Plan   api.PlannedExperiment `json:"plan"`
	States []TrialState          `json:"states"`
	Hold   int                   `json:"hold"` // index of the hold that the trials go to
	Paused bool                  `json:"paused,omitempty"`
}

// UnmarshalJSON refuses unknown fields; see TrainRunInput.
func (in *ExperimentInput) UnmarshalJSON(data []byte) error {
	type plain ExperimentInput
	return strictJSON(data, (*plain)(in), &in.invalid)
}

// The states of a trial within its experiment.
const (
	TrialWaiting = "waiting"
	TrialRunning = "running"
	TrialHeld    = "held"    // until the stop rule has judged the others
	TrialStopped = "stopped" // by the stop rule
	TrialFailed  = "failed"
	TrialDone    = "done"
)

// TrialState says how a trial is.
type TrialState struct {
	Run    string `json:"run_id"`
	Arm    string `json:"arm"`
	Seed   uint64 `json:"seed"`
	State  string `json:"state"`
	Step   int    `json:"step,omitempty"`   // of a trial that is held or stopped
	Reason string `json:"reason,omitempty"` // why it was stopped, or failed
}

// ExperimentState is the answer to QueryTrials, and the result of the workflow.
type ExperimentState struct {
	Experiment string       `json:"experiment"`
	Trials     []TrialState `json:"trials"`
	Paused     bool         `json:"paused,omitempty"`
	Parked     *Parked      `json:"parked,omitempty"`
}

// Running lists the trials that run.
func (s ExperimentState) Running() (runs []string) {
	for _, t := range s.Trials {
		if t.State == TrialRunning {
			runs = append(runs, t.Run)
		}
	}
	return runs
}

// trialsPerHistory bounds Experiment's history: a trial takes about 15 events, and an experiment with holds starts a
// trial several times.
const trialsPerHistory = 100

// experiment is Experiment's state.
type experiment struct {
	shell
	in      ExperimentInput
	plan    api.PlannedExperiment
	trials  []TrialState
	hold    int
	paused  bool
	started int // trials in this history
}

// Experiment trains the trials of an experiment as child workflows, a bounded number at once. A trial whose record is
// complete is not started, and one that was interrupted goes on. After each hold of the stop rule it asks which trials
// end early. A trial that fails or that a person cancels does not end the others: the result names it, and the next
// execution tries it again. If an activity of the experiment itself fails, the workflow parks.
func Experiment(ctx workflow.Context, in ExperimentInput) (ExperimentState, error) {
	if in.invalid != "" {
		return ExperimentState{}, refuse(ctx, badInput("%s", in.invalid))
	}
	if in.YAML == "" {
		return ExperimentState{}, refuse(ctx, badInput("experiment_yaml: give the experiment's file"))
	}
	e := &experiment{in: in, shell: shell{noSkip: "the trials depend on it"}}
	if c := in.Continued; c != nil {
		e.plan, e.trials, e.hold, e.paused = c.Plan, c.States, c.Hold, c.Paused
	}
	if err := e.open(ctx, in.Name, in.File); err != nil {
		return ExperimentState{}, err
	}
	if err := answer(ctx, QueryTrials, func() (ExperimentState, error) { return e.state(), nil }); err != nil {
		return ExperimentState{}, err
	}
	if err := e.steer(ctx); err != nil {
		return ExperimentState{}, err
	}
	err := e.attempts(ctx, e.attempt)
	return e.state(), err
}

func (e *experiment) state() ExperimentState {
	return ExperimentState{Experiment: e.at.run, Trials: e.trials, Paused: e.paused, Parked: e.parking.parked}
}

// steer adds the updates pause and unpause.
func (e *experiment) steer(ctx workflow.Context) error {
	for _, u := range []struct {
		name, what, description string
		paused                  bool
	}{
		{UpdatePause, "no other trial starts; those that run go on",
			"Start no other trial. Those that run go on: pause them by their own updates. No argument.", true},
		{UpdateUnpause, "the next trials start", "Go on with the next trials. No argument.", false},
	} {
		handler := func(ctx workflow.Context) (Steered, error) {
			e.paused = u.paused
			e.show(ctx)
			return Steered{What: u.what}, nil
		}
		validator := func(workflow.Context) error {
			if e.paused == u.paused {
				return badInput("%s: the experiment is in that state already", u.name)
			}
			return nil
		}
		options := workflow.UpdateHandlerOptions{Description: u.description, Validator: validator}
		if err := workflow.SetUpdateHandlerWithOptions(ctx, u.name, handler, options); err != nil {
			return fmt.Errorf("register update %s: %w", u.name, err)
		}
	}
	return nil
}

// attempt takes all trials to their ends. After a failure it goes on where the last attempt was.
func (e *experiment) attempt(ctx workflow.Context) (err error) {
	e.at.enter(ctx, schema.StagePrepare)
	if e.trials == nil {
		e.plan, err = call[api.PlannedExperiment](ctx, e.limits, api.PlanExperiment, "list the trials",
			api.PlanExperimentInput{ExperimentFile: e.in.ExperimentFile})
		if err != nil {
			return err
		}
		for _, t := range e.plan.Trials {
			s := TrialState{Run: t.Run, Arm: t.Arm, Seed: t.Seed, State: TrialWaiting}
			if t.Done {
				s.State = TrialDone
			}
			e.trials = append(e.trials, s)
		}
	}
	for ; e.hold < len(e.plan.Holds); e.hold++ {
		until := e.plan.Holds[e.hold]
		if err := e.round(ctx, until); err != nil {
			return err
		}
		if until > 0 {
			if err := e.judge(ctx, until); err != nil {
				return err
			}
		}
	}
	return workflow.Await(ctx, func() bool { return workflow.AllHandlersFinished(ctx) })
}

// round takes the trials that go on to a step, or to their ends. It continues as new when this history has started its
// share of them.
func (e *experiment) round(ctx workflow.Context, until int) error {
	e.at.enter(ctx, "trials")
	for {
		var next []int
		for i, s := range e.trials {
			if s.State == TrialWaiting || s.State == TrialHeld && (until == 0 || s.Step < until) {
				next = append(next, i)
			}
		}
		if len(next) == 0 {
			return nil
		}
		if e.started >= trialsPerHistory {
			return e.continueAsNew(ctx)
		}
		next = next[:min(len(next), trialsPerHistory-e.started)]
		e.started += len(next)
		err := each(ctx, int64(e.plan.Parallel), len(next), func(ctx workflow.Context, i int) error {
			return e.train(ctx, next[i], until)
		})
		if err != nil {
			return err
		}
	}
}

// train takes a trial to a step, or to its end.
func (e *experiment) train(ctx workflow.Context, i, until int) error {
	if err := workflow.Await(ctx, func() bool { return !e.paused }); err != nil {
		return err
	}
	t, s := e.plan.Trials[i], &e.trials[i]
	if s.State == TrialWaiting {
		in := api.DeedInput{Run: t.Run, Action: "start", Actor: "experiment " + e.plan.Name, At: workflow.Now(ctx).
			UnixMicro(), With: map[string]string{"workflow": TrainRunName, "recipe": t.Recipe, "digest": t.Digest}}
		why := "experiment " + e.plan.Name + " starts " + t.Run
		if _, err := call[api.Done](ctx, e.limits, api.NoteDeed, why, in); err != nil {
			return err
		}
	}
	s.State = TrialRunning
	e.show(ctx)
	in := TrainRunInput{Run: t.Run, Set: t.Set, Seed: &t.Seed, Until: until}
	if text, ok := e.in.Recipes[t.Recipe]; ok {
		in.RecipeYAML, in.RecipeFile = text, t.Recipe
	} else {
		in.Recipe = t.Recipe
	}
	var out TrainRunResult
	err := child(workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{WorkflowID: t.Run,
		StaticSummary: fmt.Sprintf("%s, seed %d, of experiment %s", t.Arm, t.Seed, e.plan.Name)}), TrainRun, in, &out)
	switch {
	case err != nil && ctx.Err() != nil: // the experiment was cancelled, and the trial with it
		s.State = TrialWaiting
		return err
	case temporal.IsCanceledError(err):
		s.State, s.Reason = TrialFailed, "the trial was cancelled"
	case err != nil:
		_, s.Reason = failure(err)
		s.State = TrialFailed
	case out.Held:
		s.State, s.Step = TrialHeld, out.Steps
	default:
		s.State = TrialDone
	}
	e.show(ctx)
	return nil
}

// judge asks the stop rule which of the trials that go on end here. Those that are done count as rivals.
func (e *experiment) judge(ctx workflow.Context, step int) error {
	var runs []string
	waits := false
	for _, s := range e.trials {
		if s.State == TrialHeld || s.State == TrialDone {
			runs = append(runs, s.Run)
		}
		waits = waits || s.State == TrialHeld
	}
	if !waits {
		return nil
	}
	e.at.enter(ctx, "judge")
	judged, err := call[api.JudgedTrials](ctx, e.limits, api.JudgeTrials,
		fmt.Sprintf("the stop rule after step %d", step),
		api.JudgeTrialsInput{ExperimentFile: e.in.ExperimentFile, Step: step, Runs: runs})
	if err != nil {
		return err
	}
	for i := range e.trials {
		s := &e.trials[i]
		if why := judged.Ended[s.Run]; why != "" && s.State == TrialHeld {
			s.State, s.Reason = TrialStopped, why
		}
	}
	e.show(ctx)
	return nil
}

func (e *experiment) continueAsNew(ctx workflow.Context) error {
	if err := workflow.Await(ctx, func() bool { return workflow.AllHandlersFinished(ctx) }); err != nil {
		return err
	}
	in := e.in
	in.Continued = &ContinuedExperiment{Plan: e.plan, States: e.trials, Hold: e.hold, Paused: e.paused}
	return workflow.NewContinueAsNewError(ctx, Experiment, in)
}

// show updates the UI's details.
func (e *experiment) show(ctx workflow.Context) {
	var b strings.Builder
	count := map[string]int{}
	for _, s := range e.trials {
		count[s.State]++
	}
	fmt.Fprintf(&b, "**%s**: %d of %d trials done, %d running, %d waiting\n\n", e.at.run, count[TrialDone],
		len(e.trials), count[TrialRunning], count[TrialWaiting])
	if e.paused {
		b.WriteString("**Paused**: send the update `unpause`.\n\n")
	}
	const most = 100 // the UI's details hold 20,000 bytes
	b.WriteString("| trial | state |\n|:--|:--|\n")
	for _, s := range e.trials[:min(len(e.trials), most)] {
		fmt.Fprintf(&b, "| %s | %s %.60s |\n", s.Run, s.State, cell(s.Reason))
	}
	workflow.SetCurrentDetails(ctx, b.String())
}
