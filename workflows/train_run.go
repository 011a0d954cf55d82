package workflows

import (
	"fmt"
	"strconv"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/ropewalk/ropewalk/activities/wire"
	"github.com/ropewalk/ropewalk/internal/machine"
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
	next      int
	progress  Progress
	recording []workflow.Future // of measured times, beside the next steps
}

// TrainRun trains one policy by one recipe: prepare, warm start, evaluate, then one child
// workflow per step, and a last evaluation. Every few steps it continues as new. A stage that
// has committed before is adopted, so a run started again goes on where it was.
func TrainRun(ctx workflow.Context, in TrainRunInput) (TrainRunResult, error) {
	if err := in.validate(); err != nil {
		return TrainRunResult{}, refuse(ctx, err)
	}
	r := &trainRun{in: in, run: in.Run}
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
	for taken := 0; r.next <= r.prepared.Plan.Steps; taken++ {
		if taken == stepsPerHistory {
			if err := r.recorded(ctx); err != nil {
				return TrainRunResult{}, err
			}
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
	r.stage(ctx, wire.InitStep, wire.StagePrepare)
	var err error
	r.prepared, err = call[wire.Prepared](ctx, wire.PrepareRun, "resolve and commit the recipe", wire.PrepareInput{
		Run: r.run, Kind: "train", Recipe: r.in.Recipe, RecipeYAML: r.in.RecipeYAML, RecipeFile: r.in.RecipeFile,
		Overrides: r.in.Set, Seed: r.in.Seed, Steps: r.in.Steps, Resume: r.in.Resume,
	})
	if err != nil {
		return err
	}
	r.progress.plan(r.run, r.prepared.Plan)
	r.stage(ctx, wire.InitStep, wire.StageWarmStart)
	init := scoped(r.run, wire.InitStep, r.prepared)
	warm, err := call[wire.WarmStarted](ctx, wire.WarmStart, "clone the teacher's demonstrations", init)
	if err != nil {
		return err
	}
	r.policy, r.next = warm.Policy, 1
	r.progress.WarmStartSeconds = seconds(warm.Timing)
	evaluated, err := r.evaluate(ctx, wire.InitStep, "warm_start")
	if err != nil {
		return err
	}
	r.progress.Warm = &evaluated.Summary
	r.record(ctx, wire.InitStep, "run", r.prepared.Timing, warm.Timing, evaluated.Timing)
	if r.prepared.NextStep > 1 {
		r.next, r.policy = r.prepared.NextStep, *r.prepared.Policy
	}
	return nil
}

// step runs the next step as a child workflow, and an evaluation after it where one is due.
func (r *trainRun) step(ctx workflow.Context) error {
	step, plan := r.next, r.prepared.Plan
	r.stage(ctx, step, "step")
	child := workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{
		WorkflowID:    StepWorkflowID(r.run, step),
		StaticSummary: fmt.Sprintf("step %d of %d of %s", step, plan.Steps, r.run),
		TypedSearchAttributes: temporal.NewSearchAttributes(attrRunID.ValueSet(r.run),
			attrStep.ValueSet(int64(step))),
	})
	var out TrainStepResult
	in := TrainStepInput{Run: r.run, Step: step, Prepared: r.prepared, Policy: r.policy}
	if err := workflow.ExecuteChildWorkflow(child, TrainStep, in).Get(ctx, &out); err != nil {
		return err
	}
	r.policy, r.next = out.Policy, step+1
	r.progress.add(out.Line)
	r.record(ctx, step, "step", out.Timings...)
	if plan.EvaluateEvery > 0 && step%plan.EvaluateEvery == 0 && step < plan.Steps {
		evaluated, err := r.evaluate(ctx, step, "step")
		if err != nil {
			return err
		}
		r.record(ctx, step, "run", evaluated.Timing)
	}
	return nil
}

func (r *trainRun) evaluate(ctx workflow.Context, step int, tag string) (wire.Evaluated, error) {
	r.stage(ctx, step, wire.StageEvaluate)
	return call[wire.Evaluated](ctx, wire.Evaluate, "held-out problems, "+tag, wire.EvaluateInput{
		Scope: scoped(r.run, step, r.prepared), Policy: r.policy, Tag: tag,
	})
}

// record keeps measured times, beside whatever comes next: nothing waits for them but the end.
func (r *trainRun) record(ctx workflow.Context, step int, part string, timings ...wire.Timing) {
	r.recording = append(r.recording, start(ctx, wire.RecordTimings, "measured times", wire.RecordTimingsInput{
		Scope: scoped(r.run, step, r.prepared), Timings: timings, Part: part,
	}))
}

// recorded waits until all measured times are kept.
func (r *trainRun) recorded(ctx workflow.Context) error {
	for _, f := range r.recording {
		if err := f.Get(ctx, nil); err != nil {
			return err
		}
	}
	r.recording = nil
	return nil
}

func (r *trainRun) finish(ctx workflow.Context) (TrainRunResult, error) {
	last := r.prepared.Plan.Steps
	evaluated, err := r.evaluate(ctx, last, "final")
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
	return out, nil
}

func (r *trainRun) restore(c Continued) {
	r.prepared, r.policy, r.next = c.Prepared, c.Policy, c.Next
	r.progress = Progress{Warm: c.Warm, Lines: c.Lines, WarmStartSeconds: c.WarmStartSeconds}
	r.progress.plan(r.run, r.prepared.Plan)
}

func (r *trainRun) continueAsNew(ctx workflow.Context) error {
	in := r.in
	in.Continued = &Continued{
		Prepared: r.prepared, Policy: r.policy, Next: r.next, Warm: r.progress.Warm,
		Lines: r.progress.Lines, WarmStartSeconds: r.progress.WarmStartSeconds,
	}
	return workflow.NewContinueAsNewError(ctx, TrainRun, in)
}

// stage tells the query, the UI's details and the search attributes where the run is.
func (r *trainRun) stage(ctx workflow.Context, step int, stage string) {
	r.progress.Stage = stage
	if step > 0 {
		r.progress.Step = step
	}
	workflow.SetCurrentDetails(ctx, r.progress.Markdown())
	// Upserting fails only for keys that cannot be encoded; these are constants.
	_ = workflow.UpsertTypedSearchAttributes(ctx, attrStep.ValueSet(int64(max(step, 0))), attrStage.ValueSet(stage))
}

// fail says what failed, where, and how to go on.
func (r *trainRun) fail(ctx workflow.Context, cause error) error {
	if temporal.IsCanceledError(cause) {
		return cause
	}
	kind, text := failure(cause)
	r.progress.Failure = text
	workflow.SetCurrentDetails(ctx, r.progress.Markdown())
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
