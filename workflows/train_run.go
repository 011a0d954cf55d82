package workflows

import (
	"fmt"
	"strconv"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/ropewalk/ropewalk/internal/machine"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/schema"
)

// TrainRunResult is the result of a finished run.
type TrainRunResult struct {
	Run    string                `json:"run_id"`
	Recipe string                `json:"recipe"`
	Seed   uint64                `json:"seed"`
	Steps  int                   `json:"steps"`
	Warm   api.EvaluationSummary `json:"warm_start"`
	Final  api.EvaluationSummary `json:"final"`
	Policy api.PolicyRef         `json:"policy"`
	// Held says that the run was to go no further than this for now: there is no final evaluation.
	Held bool `json:"held,omitempty"`
	// Machine is the machine that prepared the run.
	Machine machine.Machine `json:"machine"`
}

// trainRun is TrainRun's state.
type trainRun struct {
	in       TrainRunInput
	run      string
	prepared api.Prepared
	policy   api.PolicyRef
	earlier  []api.PolicyRef // policies before policy that steps are sampled from, the oldest first
	home     string          // the host whose engine holds the policy, as far as the workflow knows
	buffer   schema.Ref      // the replay buffer after the previous step; zero where it is empty
	next     int             // the current step, or the next one if none runs
	progress Progress
	pruner   pruner
	ahead    ahead
	due      *Due      // the evaluation that runs alongside the next step; nil: none
	selected *Selected // the next step's prompts, if they are selected; nil: they are not

	recordings  recordings
	compactions compactions
	later       later

	parking    parking
	turn       workflow.Mutex // one amendment at a time
	amendments amendments
	number     int             // number of the next amendment
	amending   int             // pending amendments
	unsettled  *api.AmendInput // an amendment that may or may not be committed; nil: none
	paused     bool
	stepping   bool // step next has begun
	begun      bool // the first policy is made, and measured unless that runs alongside step 1
	limits     limits
	mended     bool // a person has changed the recipe for the retry of the stage that runs, which is no rollout
	finishing  bool // the last step is done
	handsOver  bool // to the current build of the workers: a person asked for it, or this one is superseded
	states     states
	asked      int // steps of the recipe that the run began with
}

// TrainRun trains one policy by one recipe: prepare, warm start, evaluate, then one child workflow for each step, and
// a last evaluation. Every few steps it continues as new, and before the next step if it is to go on with another build
// of the workers. It adopts stages that are already committed, so a run that is started again continues where it was.
func TrainRun(ctx workflow.Context, in TrainRunInput) (TrainRunResult, error) {
	if err := in.validate(); err != nil {
		return TrainRunResult{}, refuse(ctx, err)
	}
	run, err := nameRun(ctx, in.Run)
	if err != nil {
		return TrainRunResult{}, err
	}
	r := &trainRun{in: in, run: run, turn: workflow.NewMutex(ctx)}
	r.progress.Run, r.progress.Recipe = r.run, in.Recipe+in.RecipeFile // until it is prepared
	if err := answer(ctx, QueryProgress, func() (Progress, error) { return r.progress, nil }); err != nil {
		return TrainRunResult{}, err
	}
	r.states.run = r.run
	if err := r.steer(ctx); err != nil {
		return TrainRunResult{}, err
	}
	if err := r.parking.register(ctx); err != nil {
		return TrainRunResult{}, err
	}
	if err := answer(ctx, QueryUnrecorded, r.recordings.unrecorded); err != nil {
		return TrainRunResult{}, err
	}
	result, err := r.execute(ctx)
	if err != nil && !workflow.IsContinueAsNewError(err) {
		return result, r.fail(ctx, err)
	}
	return result, err
}

func (r *trainRun) execute(ctx workflow.Context) (TrainRunResult, error) {
	if r.in.Continued != nil {
		r.restore(*r.in.Continued)
	} else {
		r.progress.Started = workflow.GetInfo(ctx).WorkflowStartTime.UTC()
		r.states.began(ctx, r.progress.Started)
		if err := r.begin(ctx); err != nil {
			return TrainRunResult{}, err
		}
	}
	r.begun = true
	for taken := 0; ; taken++ {
		if err := r.await(ctx); err != nil {
			return TrainRunResult{}, err
		}
		r.enact(r.next)
		if r.next > r.prepared.Plan.Steps {
			break
		}
		if until := r.in.Until; until > 0 && r.next > until {
			return r.hold(ctx)
		}
		r.handsOver = r.handsOver || r.recordings.superseded(ctx)
		if taken == stepsPerHistory || r.handsOver {
			return TrainRunResult{}, r.continueAsNew(ctx)
		}
		done := r.next - 1
		r.later.add(func(ctx workflow.Context) { r.pruner.start(ctx, scoped(r.run, done, r.prepared)) })
		if err := r.step(ctx); err != nil {
			return TrainRunResult{}, err
		}
	}
	return r.finish(ctx)
}

// begin prepares the run and makes or finds its first policy.
func (r *trainRun) begin(ctx workflow.Context) error {
	if err := r.prepare(ctx); err != nil {
		return err
	}
	r.makeUp(ctx)
	init := scoped(r.run, api.InitStep, r.prepared)
	timings := []api.Timing{r.prepared.Timing}
	if r.prepared.Plan.Needs.Data {
		done, err := r.data(ctx, init)
		if err != nil {
			return err
		}
		timings = append(timings, done...)
	}
	r.stage(ctx, api.InitStep, schema.StageWarmStart)
	var warm api.WarmStarted
	err := r.attempt(ctx, mandatory("the first policy comes from it"), func(ctx workflow.Context) (err error) {
		warm, err = call[api.WarmStarted](ctx, r.limits, api.WarmStart, "clone the teacher's demonstrations",
			scoped(r.run, api.InitStep, r.prepared))
		return err
	})
	if err != nil {
		return err
	}
	r.policy, r.home = warm.Policy, warm.Home
	r.progress.WarmStartSeconds = seconds(warm.Timing)
	timings = append(timings, warm.Timing)
	if warm.Initial != nil { // only where the plan's needs ask for it
		initial, err := r.initial(ctx, *warm.Initial)
		if err != nil {
			return err
		}
		timings = append(timings, initial)
	}
	if r.prepared.NextStep > 1 { // the steps that are done waited for it
		err = r.measureNow(ctx, r.dueAfter(api.InitStep, "warm_start", r.prepared, timings...))
	} else {
		err = r.measure(ctx, api.InitStep, "warm_start", r.prepared, timings...)
	}
	if err != nil {
		return err
	}
	return r.resume(ctx)
}

// resume takes up the state of a run of which steps are done.
func (r *trainRun) resume(ctx workflow.Context) error {
	if r.prepared.NextStep > 1 {
		if k := r.prepared.Plan.Staleness; k > 0 {
			r.earlier = append([]api.PolicyRef{r.policy}, r.prepared.Earlier...)
			r.earlier = r.earlier[max(0, len(r.earlier)-k):]
		}
		r.policy, r.buffer = *r.prepared.Policy, r.prepared.Buffer
		// The run may have ended before this evaluation did; if not, the evaluation is adopted.
		if last := r.next - 1; evaluatesAfter(r.prepared.Plan, last) {
			return r.measure(ctx, last, api.TagStep, r.amendments.at(last, r.prepared))
		}
	}
	return nil
}

// evaluatesAfter reports whether a step that is not the last one is followed by an evaluation.
func evaluatesAfter(plan api.Plan, step int) bool {
	return plan.EvaluateEvery > 0 && step%plan.EvaluateEvery == 0 && step < plan.Steps
}

// initial measures the policy before the warm start, so that readers can say what the warm start changed.
func (r *trainRun) initial(ctx workflow.Context, policy api.PolicyRef) (api.Timing, error) {
	r.stage(ctx, api.InitStep, schema.StageInitial)
	var out api.Evaluated
	err := r.attempt(ctx, mandatory("the warm start is compared with it"), func(ctx workflow.Context) (err error) {
		scope, h := r.mend(scoped(r.run, api.InitStep, r.prepared)), newHome(ctx, r.home, r.prepared.Plan, r.limits)
		err = sample(ctx, h, scope, api.EvaluateInitial, "held-out problems before the warm start",
			api.EvaluateInput{Scope: scope, Policy: policy, Tag: schema.StageInitial}, &out)
		r.home = h.host
		return err
	})
	return out.Timing, err
}

func (r *trainRun) prepare(ctx workflow.Context) error {
	r.stage(ctx, api.InitStep, schema.StagePrepare)
	err := r.attempt(ctx, mandatory("every stage reads the recipe"), func(ctx workflow.Context) (err error) {
		r.prepared, err = call[api.Prepared](ctx, r.limits, api.PrepareRun, "resolve and commit the recipe",
			api.PrepareInput{Run: r.run, Kind: "train", Recipe: r.in.Recipe, RecipeYAML: r.in.RecipeYAML,
				RecipeFile: r.in.RecipeFile, Overrides: r.in.Set, Seed: r.in.Seed, Steps: r.in.Steps,
				Resume: r.in.Resume, Fork: r.in.Fork, ForkFrom: r.in.ForkFrom})
		return err
	})
	if err != nil {
		return err
	}
	r.next, r.amendments = max(r.prepared.NextStep, 1), r.prepared.Amendments
	r.enact(0) // what was changed before the first step
	r.number = max(r.prepared.NextAmendment, len(r.amendments))
	r.prepared.Amendments, r.asked = nil, r.prepared.Plan.Steps
	r.progress.plan(r.run, r.amendments.newest(r.prepared).Plan)
	r.progress.Notes, r.prepared.Notes = r.prepared.Notes, nil
	return nil
}

// step runs the next step, as a child workflow unless it is short, followed by an evaluation if one is due. A failed
// step runs again once a person asks for it, and adopts what it has committed.
func (r *trainRun) step(ctx workflow.Context) error {
	step := r.next
	r.stepping = true
	place := "step"
	if takesItself(r.prepared.Plan) {
		place = schema.StageRollout
	}
	r.at(ctx, step, place)
	r.later.add(func(ctx workflow.Context) { showPlace(ctx, step, place) })
	var out TrainStepResult
	var skipped []api.ExcludedShard
	gen := r.amendments.generation(step)
	r.sampleAhead(ctx)
	if err := r.awaitSampled(ctx); err != nil {
		return err
	}
	err := r.attempt(ctx, r.skipAlongside(r.skipShards(step, &skipped)), func(ctx workflow.Context) (err error) {
		if err := r.settleInTurn(ctx); err != nil {
			return err
		}
		r.enact(step)
		if now := r.amendments.generation(step); now != gen { // the numbers of shards mean other shards now
			gen, skipped = now, nil
		}
		in := r.stepInput(step)
		in.Skip, in.Timeouts = skipped, r.limits
		r.ahead.take(&in)
		plan := r.prepared.Plan
		in.SelectNext = plan.PromptsAhead && plan.Staleness == 0 && step < plan.Steps
		if r.due != nil {
			r.due.Input.Scope = r.mend(r.due.Input.Scope)
			in.Evaluate = &r.due.Input
		}
		defer r.later.during(ctx)()
		if takesItself(plan) {
			out, err = r.ownStep(ctx, in)
			return err
		}
		return child(r.child(ctx, step), TrainStep, in, &out)
	})
	if err != nil {
		return err
	}
	r.advance(out.Policy)
	r.buffer, r.home, r.stepping = out.Buffer, out.Home, false
	r.progress.add(out.Line)
	times := &recording{in: r.timesOf(step, "step", out.Timings...)}
	r.recordings = append(r.recordings, times)
	r.later.add(times.start)
	if err := r.tookAlongside(ctx, out.Evaluated); err != nil {
		return err
	}
	if r.prepared.Plan.Staleness == 0 { // otherwise the sampling of a step selects the next one's
		r.selected = out.Next
	}
	if evaluatesAfter(r.prepared.Plan, step) {
		if r.prepared.Plan.Evaluations != api.EvaluateAlongside {
			if err := r.idle(ctx); err != nil {
				return err
			}
		}
		return r.measure(ctx, step, api.TagStep, r.prepared)
	}
	if step < r.prepared.Plan.Steps {
		r.compact(step)
	}
	return nil
}

func (r *trainRun) child(ctx workflow.Context, step int) workflow.Context {
	return workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{
		WorkflowID:    StepWorkflowID(r.run, step),
		StaticSummary: fmt.Sprintf("step %d of %d of %s", step, r.prepared.Plan.Steps, r.run),
		TypedSearchAttributes: temporal.NewSearchAttributes(attrRunID.ValueSet(r.run), attrStep.ValueSet(int64(step)),
			attrStage.ValueSet(schema.StageRollout)),
	})
}

// evaluate measures a policy; done is false if a person chose to skip the evaluation.
func (r *trainRun) evaluate(ctx workflow.Context, in api.EvaluateInput) (out api.Evaluated, done bool, err error) {
	r.stage(ctx, in.Step, schema.StageEvaluate)
	err = r.attempt(ctx, skipEvaluation(in.Tag), func(ctx workflow.Context) (err error) {
		h := newHome(ctx, r.home, r.prepared.Plan, r.limits)
		in.Scope = r.mend(in.Scope)
		err = sample(ctx, h, in.Scope, api.Evaluate, "held-out problems, "+in.Tag, in, &out)
		r.home = h.host
		done = err == nil
		return err
	})
	return out, done, err
}

func (r *trainRun) finish(ctx workflow.Context) (TrainRunResult, error) {
	r.finishing = true
	r.later.flush(ctx)
	last := r.prepared.Plan.Steps
	done := scoped(r.run, last, r.prepared)
	r.pruner.start(ctx, done)
	if r.due != nil && r.due.Input.Step == last { // the run was stopped here: the final evaluation has its place
		r.due = nil
	}
	if err := r.settleDue(ctx); err != nil {
		return TrainRunResult{}, err
	}
	evaluated, _, err := r.evaluate(ctx, r.dueAfter(last, api.TagFinal, r.prepared).Input)
	if err != nil {
		return TrainRunResult{}, err
	}
	r.recordings.start(ctx, r.timesOf(last, "run", evaluated.Timing))
	if err := r.recorded(ctx); err != nil {
		return TrainRunResult{}, err
	}
	if last > 0 {
		r.compactions.start(ctx, r.run, r.prepared, r.recordings, last)
	}
	r.compactions.wait(ctx)
	if err := r.pruner.finish(ctx, done); err != nil {
		return TrainRunResult{}, err
	}
	r.progress.Final = &evaluated.Summary
	r.states.success(ctx, evaluated.Summary)
	r.states.settle(ctx)
	r.states.show(ctx, ended(last, r.asked))
	r.stage(ctx, last, "done")
	out := TrainRunResult{
		Run: r.run, Recipe: r.prepared.Plan.Recipe, Seed: r.prepared.Plan.Seed, Steps: last,
		Final: evaluated.Summary, Policy: r.policy, Machine: r.prepared.Machine,
	}
	if r.progress.Warm != nil {
		out.Warm = *r.progress.Warm
	}
	return out, workflow.Await(ctx, func() bool { return workflow.AllHandlersFinished(ctx) })
}

func (r *trainRun) restore(c Continued) {
	r.prepared, r.policy, r.buffer, r.home, r.next = c.Prepared, c.Policy, c.Buffer, c.Home, c.Next
	r.earlier, r.due, r.selected = c.Earlier, c.Due, c.Selected
	r.amendments, r.paused, r.unsettled = c.Amendments, c.Paused, c.Unsettled
	r.number = max(c.NextAmendment, len(c.Amendments))
	r.pruner.retention, r.pruner.evaluated, r.pruner.failed = c.Retention, c.Evaluated, c.Unpruned
	r.progress = Progress{Warm: c.Warm, Measured: c.Measured, Lines: c.Lines,
		WarmStartSeconds: c.WarmStartSeconds, Changes: c.Changes,
		Unpruned: c.Unpruned, Started: c.Started, Totals: c.Totals}
	r.asked = c.Asked
	r.progress.plan(r.run, r.amendments.newest(r.prepared).Plan)
}

func (r *trainRun) continueAsNew(ctx workflow.Context) error {
	r.later.flush(ctx)
	if err := r.idle(ctx); err != nil {
		return err
	}
	if err := r.recorded(ctx); err != nil {
		return err
	}
	r.compactions.wait(ctx)
	r.states.settle(ctx)
	// This history would lose an update that is answered only in the next one.
	if err := workflow.Await(ctx, func() bool { return workflow.AllHandlersFinished(ctx) }); err != nil {
		return err
	}
	in := r.in
	in.Unrecorded = nil
	in.Continued = &Continued{
		Prepared: r.prepared, Policy: r.policy, Earlier: r.earlier, Buffer: r.buffer, Home: r.home, Next: r.next,
		Due: r.due, Selected: r.selected, Warm: r.progress.Warm, Measured: r.progress.Measured,
		Lines: r.progress.Lines, WarmStartSeconds: r.progress.WarmStartSeconds,
		Amendments: r.amendments, NextAmendment: r.number, Unsettled: r.unsettled,
		Paused: r.paused, Changes: r.progress.Changes,
		Asked: r.asked, Started: r.progress.Started, Totals: r.progress.Totals,
	}
	r.pruner.carry(ctx, in.Continued)
	if r.handsOver {
		return workflow.NewContinueAsNewError(ctx, HandOver, in)
	}
	return workflow.NewContinueAsNewError(ctx, TrainRun, in)
}

// stage shows the current step and stage in the query, the UI's details and the search attributes.
func (r *trainRun) stage(ctx workflow.Context, step int, stage string) {
	r.at(ctx, step, stage)
	showPlace(ctx, step, stage)
}

// at shows the current step and stage in the query and the UI's details.
func (r *trainRun) at(ctx workflow.Context, step int, stage string) {
	r.progress.Stage = stage
	if step > 0 {
		r.progress.Step = step
	}
	r.show(ctx)
}

// showPlace shows a step and a stage in the search attributes.
func showPlace(ctx workflow.Context, step int, stage string) {
	// Upserting fails only for keys that cannot be encoded; these are constants.
	_ = workflow.UpsertTypedSearchAttributes(ctx, attrStep.ValueSet(int64(max(step, 0))), attrStage.ValueSet(stage))
}

// show updates the UI's details.
func (r *trainRun) show(ctx workflow.Context) {
	r.progress.Paused, r.progress.Parked, r.progress.Unpruned = r.paused, r.parking.parked, r.pruner.failed
	r.progress.Elapsed = workflow.Now(ctx).Sub(r.progress.Started).Seconds()
	workflow.SetCurrentDetails(ctx, r.progress.Markdown())
}

// fail reports what failed, where, and how to continue.
func (r *trainRun) fail(ctx workflow.Context, cause error) error {
	if temporal.IsCanceledError(cause) { // who cancelled it has noted why
		r.states.show(ctx, schema.StateCancelled)
		return cause
	}
	kind, text := failure(cause)
	r.progress.Failure = text
	r.show(ctx)
	setFailureKind(ctx, kind)
	refused := r.progress.Stage == schema.StagePrepare && kind == api.FailBadInput
	where := r.progress.Stage
	if where == "step" { // the child's error names the stage
		where = "step " + strconv.Itoa(r.progress.Step)
	} else if r.progress.Step > 0 {
		where = "step " + strconv.Itoa(r.progress.Step) + ", " + where
	}
	if refused { // there may be no run to note anything of
		r.states.show(ctx, schema.StateFailed)
	} else {
		r.states.leave(ctx, schema.StateFailed, kind, where+": "+text)
	}
	message := fmt.Sprintf("%s: %s", where, text)
	if kind != api.FailBadInput {
		message += fmt.Sprintf("; what was committed is kept: mend the cause, then `ropewalk resume %s`", r.run)
	}
	return temporal.NewNonRetryableApplicationError(message, kind, nil)
}
