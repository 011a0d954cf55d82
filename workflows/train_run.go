package workflows

import (
	"fmt"
	"strconv"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/ropewalk/ropewalk/activities/wire"
	"github.com/ropewalk/ropewalk/internal/machine"
	"github.com/ropewalk/ropewalk/schema"
)

// TrainRunResult is what a finished run returns.
type TrainRunResult struct {
	Run    string                 `json:"run_id"`
	Recipe string                 `json:"recipe"`
	Seed   uint64                 `json:"seed"`
	Steps  int                    `json:"steps"`
	Warm   wire.EvaluationSummary `json:"warm_start"`
	Final  wire.EvaluationSummary `json:"final"`
	Policy wire.PolicyRef         `json:"policy"`
	// Machine is the one that prepared the run.
	Machine machine.Machine `json:"machine"`
}

// trainRun is TrainRun's state.
type trainRun struct {
	in        TrainRunInput
	run       string
	prepared  wire.Prepared
	policy    wire.PolicyRef
	home      string     // the host whose engine holds it, as far as is known
	buffer    schema.Ref // the replay buffer after the step before; zero where it is empty
	next      int        // the step that runs, or the one to come
	progress  Progress
	recording []recording // of measured times, beside the next steps

	parking    parking
	turn       workflow.Mutex   // one amendment at a time
	amendments []wire.Amendment // of the recipe, in the order made
	amending   int              // amendments under way
	paused     bool
	stepping   bool // step next has begun
	finishing  bool // no step is to come
}

// TrainRun trains one policy by one recipe: prepare, warm start, evaluate, then one child
// workflow per step, and a last evaluation. Every few steps it continues as new. A stage that
// has committed before is adopted, so a run started again goes on where it was.
func TrainRun(ctx workflow.Context, in TrainRunInput) (TrainRunResult, error) {
	if err := in.validate(); err != nil {
		return TrainRunResult{}, refuse(ctx, err)
	}
	r := &trainRun{in: in, run: in.Run, turn: workflow.NewMutex(ctx)}
	if r.run == "" {
		r.run = workflow.GetInfo(ctx).WorkflowExecution.ID
	}
	if err := checkRun(r.run); err != nil {
		return TrainRunResult{}, refuse(ctx, err)
	}
	if err := workflow.SetQueryHandler(ctx, QueryProgress, func() (Progress, error) { return r.progress, nil }); err != nil {
		return TrainRunResult{}, fmt.Errorf("register query %s: %w", QueryProgress, err)
	}
	if err := workflow.UpsertTypedSearchAttributes(ctx, attrRunID.ValueSet(r.run)); err != nil {
		return TrainRunResult{}, fmt.Errorf("set search attribute RunID: %w", err)
	}
	if err := r.steer(ctx); err != nil {
		return TrainRunResult{}, err
	}
	if err := r.parking.register(ctx); err != nil {
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
	} else if err := r.begin(ctx); err != nil {
		return TrainRunResult{}, err
	}
	for taken := 0; ; taken++ {
		if err := r.await(ctx); err != nil {
			return TrainRunResult{}, err
		}
		r.enact(r.next)
		if r.next > r.prepared.Plan.Steps {
			break
		}
		if taken == stepsPerHistory {
			return TrainRunResult{}, r.continueAsNew(ctx)
		}
		if err := r.step(ctx); err != nil {
			return TrainRunResult{}, err
		}
	}
	return r.finish(ctx)
}

// begin prepares the run and makes or finds the policy that it starts from.
func (r *trainRun) begin(ctx workflow.Context) error {
	if err := r.prepare(ctx); err != nil {
		return err
	}
	r.stage(ctx, wire.InitStep, wire.StageWarmStart)
	init := scoped(r.run, wire.InitStep, r.prepared)
	var warm wire.WarmStarted
	err := r.attempt(ctx, mandatory("the first policy comes from it"), func(ctx workflow.Context) (err error) {
		warm, err = call[wire.WarmStarted](ctx, wire.WarmStart, "clone the teacher's demonstrations", init)
		return err
	})
	if err != nil {
		return err
	}
	r.policy, r.home = warm.Policy, warm.Home
	r.progress.WarmStartSeconds = seconds(warm.Timing)
	evaluated, _, err := r.evaluate(ctx, wire.InitStep, "warm_start")
	if err != nil {
		return err
	}
	r.progress.Warm = &evaluated.Summary
	r.record(ctx, wire.InitStep, "run", r.prepared.Timing, warm.Timing, evaluated.Timing)
	if r.prepared.NextStep > 1 {
		r.policy, r.buffer = *r.prepared.Policy, r.prepared.Buffer
	}
	return nil
}

func (r *trainRun) prepare(ctx workflow.Context) error {
	r.stage(ctx, wire.InitStep, wire.StagePrepare)
	err := r.attempt(ctx, mandatory("every stage reads the recipe"), func(ctx workflow.Context) (err error) {
		r.prepared, err = call[wire.Prepared](ctx, wire.PrepareRun, "resolve and commit the recipe", wire.PrepareInput{
			Run: r.run, Kind: "train", Recipe: r.in.Recipe, RecipeYAML: r.in.RecipeYAML, RecipeFile: r.in.RecipeFile,
			Overrides: r.in.Set, Seed: r.in.Seed, Steps: r.in.Steps, Resume: r.in.Resume,
		})
		return err
	})
	if err != nil {
		return err
	}
	r.next, r.amendments = max(r.prepared.NextStep, 1), r.prepared.Amendments
	r.prepared.Amendments = nil
	r.progress.plan(r.run, r.newest().Plan)
	return nil
}

// step runs the next step as a child workflow, and an evaluation after it where one is due. A
// step that fails is run again once a person says so: what it has committed is adopted.
func (r *trainRun) step(ctx workflow.Context) error {
	step := r.next
	r.stepping = true
	r.stage(ctx, step, "step")
	var out TrainStepResult
	var skipped []wire.ExcludedShard
	gen := r.generation(step)
	err := r.attempt(ctx, r.skipShards(step, &skipped), func(ctx workflow.Context) error {
		r.enact(step)
		if now := r.generation(step); now != gen { // the shards are other ones now
			gen, skipped = now, nil
		}
		in := TrainStepInput{
			Run: r.run, Step: step, Gen: gen, Prepared: r.prepared, Policy: r.policy, Buffer: r.buffer, Home: r.home,
			Skip: skipped, Timeouts: timeoutsOf(ctx),
		}
		return workflow.ExecuteChildWorkflow(r.child(ctx, step), TrainStep, in).Get(ctx, &out)
	})
	if err != nil {
		return err
	}
	r.policy, r.buffer, r.home, r.next, r.stepping = out.Policy, out.Buffer, out.Home, step+1, false
	r.progress.add(out.Line)
	r.record(ctx, step, "step", out.Timings...)
	plan := r.prepared.Plan
	if plan.EvaluateEvery > 0 && step%plan.EvaluateEvery == 0 && step < plan.Steps {
		evaluated, done, err := r.evaluate(ctx, step, "step")
		if err != nil {
			return err
		}
		if done {
			r.record(ctx, step, "run", evaluated.Timing)
		}
	}
	return nil
}

func (r *trainRun) child(ctx workflow.Context, step int) workflow.Context {
	return workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{
		WorkflowID:    StepWorkflowID(r.run, step),
		StaticSummary: fmt.Sprintf("step %d of %d of %s", step, r.prepared.Plan.Steps, r.run),
		TypedSearchAttributes: temporal.NewSearchAttributes(attrRunID.ValueSet(r.run),
			attrStep.ValueSet(int64(step))),
	})
}

// evaluate measures the policy; done is false where a person chose to leave the evaluation out.
func (r *trainRun) evaluate(ctx workflow.Context, step int, tag string) (out wire.Evaluated, done bool, err error) {
	r.stage(ctx, step, wire.StageEvaluate)
	skip := mandatory("the run's result compares the policy before and after")
	if tag == "step" {
		skip = func([]StageFailure) skipping {
			return skipping{words: "this evaluation is left out; training goes on"}
		}
	}
	err = r.attempt(ctx, skip, func(ctx workflow.Context) (err error) {
		scope, h := scoped(r.run, step, r.prepared), newHome(ctx, r.home, r.prepared.Plan)
		out, err = sample(ctx, h, scope, wire.Evaluate, "held-out problems, "+tag, wire.EvaluateInput{Scope: scope, Policy: r.policy, Tag: tag}, (*wire.Evaluated).Its)
		r.home = h.host
		done = err == nil
		return err
	})
	return out, done, err
}

// recording is a step's measured times on their way into the record.
type recording struct {
	in     wire.RecordTimingsInput
	future workflow.Future
}

// record keeps measured times, beside whatever comes next: nothing waits for them but the end.
func (r *trainRun) record(ctx workflow.Context, step int, part string, timings ...wire.Timing) {
	in := wire.RecordTimingsInput{Scope: scoped(r.run, step, r.prepared), Timings: timings, Part: part}
	r.recording = append(r.recording, recording{in, start(ctx, wire.RecordTimings, "measured times", in)})
}

// recorded waits until all measured times are kept.
func (r *trainRun) recorded(ctx workflow.Context) error {
	skip := func([]StageFailure) skipping {
		return skipping{words: "these measured times are not kept; no stage reads them"}
	}
	for _, one := range r.recording {
		// A failure beside the steps may be of an outage that is long mended: they are tried anew before anyone is asked.
		err := one.future.Get(ctx, nil)
		if err != nil && !temporal.IsCanceledError(err) {
			err = r.attempt(ctx, skip, func(ctx workflow.Context) error {
				_, err := call[wire.Done](ctx, wire.RecordTimings, "measured times", one.in)
				return err
			})
		}
		if err != nil {
			return err
		}
	}
	r.recording = nil
	return nil
}

func (r *trainRun) finish(ctx workflow.Context) (TrainRunResult, error) {
	r.finishing = true
	last := r.prepared.Plan.Steps
	evaluated, _, err := r.evaluate(ctx, last, "final")
	if err != nil {
		return TrainRunResult{}, err
	}
	r.record(ctx, last, "run", evaluated.Timing)
	if err := r.recorded(ctx); err != nil {
		return TrainRunResult{}, err
	}
	r.progress.Final = &evaluated.Summary
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
	r.amendments, r.paused = c.Amendments, c.Paused
	r.progress = Progress{Warm: c.Warm, Lines: c.Lines, WarmStartSeconds: c.WarmStartSeconds, Changes: c.Changes}
	r.progress.plan(r.run, r.newest().Plan)
}

func (r *trainRun) continueAsNew(ctx workflow.Context) error {
	if err := r.recorded(ctx); err != nil {
		return err
	}
	// An update that is answered in the next history would be lost with this one.
	if err := workflow.Await(ctx, func() bool { return workflow.AllHandlersFinished(ctx) }); err != nil {
		return err
	}
	in := r.in
	in.Continued = &Continued{
		Prepared: r.prepared, Policy: r.policy, Buffer: r.buffer, Home: r.home, Next: r.next, Warm: r.progress.Warm,
		Lines: r.progress.Lines, WarmStartSeconds: r.progress.WarmStartSeconds,
		Amendments: r.amendments, Paused: r.paused, Changes: r.progress.Changes,
	}
	return workflow.NewContinueAsNewError(ctx, TrainRun, in)
}

// stage tells the query, the UI's details and the search attributes where the run is.
func (r *trainRun) stage(ctx workflow.Context, step int, stage string) {
	r.progress.Stage = stage
	if step > 0 {
		r.progress.Step = step
	}
	r.show(ctx)
	// Upserting fails only for keys that cannot be encoded; these are constants.
	_ = workflow.UpsertTypedSearchAttributes(ctx, attrStep.ValueSet(int64(max(step, 0))), attrStage.ValueSet(stage))
}

// show brings the UI's details up to date.
func (r *trainRun) show(ctx workflow.Context) {
	r.progress.Paused, r.progress.Parked = r.paused, r.parking.parked
	workflow.SetCurrentDetails(ctx, r.progress.Markdown())
}

// fail says what failed, where, and how to go on.
func (r *trainRun) fail(ctx workflow.Context, cause error) error {
	if temporal.IsCanceledError(cause) {
		return cause
	}
	kind, text := failure(cause)
	r.progress.Failure = text
	r.show(ctx)
	_ = workflow.UpsertTypedSearchAttributes(ctx, attrFailureKind.ValueSet(kind))
	where := r.progress.Stage
	if where == "step" { // its child says which stage
		where = "step " + strconv.Itoa(r.progress.Step)
	} else if r.progress.Step > 0 {
		where = "step " + strconv.Itoa(r.progress.Step) + ", " + where
	}
	message := fmt.Sprintf("%s: %s", where, text)
	if kind != wire.FailBadInput {
		message += fmt.Sprintf("; what was committed is kept: mend the cause, then `ropewalk resume %s`", r.run)
	}
	return temporal.NewNonRetryableApplicationError(message, kind, nil)
}
