package workflows

import (
	"fmt"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/schema"
)

// tagOwn is the tag of the rows of an evaluation of its own: that of a training's last evaluation, so that both have
// the same rows. The manifest that prepares the run tells them apart.
const tagOwn = api.TagFinal

// EvaluateRunResult is the result of an evaluation of its own.
type EvaluateRunResult struct {
	Run     string                `json:"run_id"`
	Recipe  string                `json:"recipe"`
	Seed    uint64                `json:"seed"`
	Step    int                   `json:"step"` // the step that the evaluation is recorded at
	Policy  api.PolicyRef         `json:"policy"`
	Summary api.EvaluationSummary `json:"summary"`
}

// evaluateRun is EvaluateRun's state.
type evaluateRun struct {
	in       EvaluateInput
	at       position
	progress Progress
	parking  parking
	states   states
}

// EvaluateRun measures one policy, which another run has made, in an environment that its recipe names. It has a
// record of its own: the recipe, the policy's manifest and the evaluation. Committed stages are adopted, so a run that
// is started again continues where it was.
func EvaluateRun(ctx workflow.Context, in EvaluateInput) (EvaluateRunResult, error) {
	if err := in.validate(); err != nil {
		return EvaluateRunResult{}, refuse(ctx, err)
	}
	run := in.Run
	if run == "" {
		run = workflow.GetInfo(ctx).WorkflowExecution.ID
	}
	if err := checkRun(run); err != nil {
		return EvaluateRunResult{}, refuse(ctx, err)
	}
	if err := workflow.UpsertTypedSearchAttributes(ctx, attrRunID.ValueSet(run)); err != nil {
		return EvaluateRunResult{}, fmt.Errorf("set search attribute RunID: %w", err)
	}
	r := &evaluateRun{in: in, at: position{run: run}, states: states{run: run}}
	r.progress = Progress{Run: run, Recipe: in.RecipeFile, Started: workflow.GetInfo(ctx).WorkflowStartTime.UTC()}
	r.states.began(ctx, r.progress.Started)
	progress := func() (Progress, error) {
		p := r.progress
		p.Stage, p.Step, p.Parked = r.at.stage, r.at.step, r.parking.parked
		return p, nil
	}
	if err := workflow.SetQueryHandler(ctx, QueryProgress, progress); err != nil {
		return EvaluateRunResult{}, fmt.Errorf("register query %s: %w", QueryProgress, err)
	}
	if err := r.parking.register(ctx); err != nil {
		return EvaluateRunResult{}, err
	}
	return r.execute(ctx)
}

// execute evaluates until an attempt succeeds. An attempt that fails parks the workflow until a person decides.
func (r *evaluateRun) execute(ctx workflow.Context) (EvaluateRunResult, error) {
	timeouts := map[string]float64{}
	for {
		result, err := r.attempt(withTimeouts(ctx, timeouts))
		if err == nil {
			r.states.success(ctx, result.Summary)
			r.states.settle(ctx)
			r.states.show(ctx, schema.StateDone)
			r.at.enter(ctx, "done")
		}
		if err == nil || temporal.IsCanceledError(err) {
			return result, err
		}
		all := failures(err, r.at.stage)
		chosen, err := r.park(ctx, all)
		if err != nil {
			return result, err
		}
		timeouts = chosen.timeouts(timeouts, all)
	}
}

// park waits for a person. It returns the failure if there is to be no other attempt.
func (r *evaluateRun) park(ctx workflow.Context, all []StageFailure) (decision, error) {
	setFailureKind(ctx, all[0].Kind)
	if all[0].Kind == api.FailBadInput {
		if r.at.stage == api.StagePrepare { // there may be no run to note anything of
			r.states.show(ctx, schema.StateFailed)
		} else {
			r.states.leave(ctx, schema.StateFailed, all[0].Kind, reasonOf(all))
		}
		return decision{}, temporal.NewNonRetryableApplicationError(r.at.stage+": "+all[0].Text, all[0].Kind, nil)
	}
	what := Parked{Step: r.at.step, Kind: all[0].Kind, Failures: all,
		NoSkip: "the evaluation is all that this run is for"}
	r.states.enter(ctx, schema.StateParked, what.Kind, reasonOf(all))
	chosen, err := r.parking.hold(ctx, what, func() { workflow.SetCurrentDetails(ctx, what.markdown(r.at.run)) })
	if err != nil {
		return chosen, err
	}
	if chosen.action == UpdateAbort {
		r.states.leave(ctx, schema.StateFailed, all[0].Kind, reasonOf(all))
		return chosen, aborted(all)
	}
	unsetFailureKind(ctx)
	r.states.enter(ctx, schema.StateRunning, "", "")
	return chosen, nil
}

// attempt prepares the run, evaluates and records the measured times.
func (r *evaluateRun) attempt(ctx workflow.Context) (EvaluateRunResult, error) {
	r.at.enter(ctx, api.StagePrepare)
	in := api.PrepareInput{Run: r.at.run, Kind: "evaluate", RecipeYAML: r.in.RecipeYAML, RecipeFile: r.in.RecipeFile,
		Overrides: r.in.Set, Resume: r.in.Resume}
	if r.in.LatestOf != "" {
		in.LatestOf = r.in.LatestOf
	} else if !r.in.Resume {
		in.Evaluates = &r.in.Policy
	}
	prepared, err := call[api.Prepared](ctx, api.PrepareRun, "resolve and commit the recipe", in)
	if err != nil {
		return EvaluateRunResult{}, err
	}
	policy := *prepared.Evaluates
	r.at.step = prepared.Plan.Steps
	r.progress.plan(r.at.run, prepared.Plan)
	r.progress.Notes = prepared.Notes
	r.at.enter(ctx, api.StageEvaluate)
	scope, h := scoped(r.at.run, r.at.step, prepared), newHome(ctx, "", prepared.Plan)
	ask := api.EvaluateInput{Scope: scope, Policy: policy, Tag: tagOwn}
	if prepared.Evaluation != nil {
		ask.Positions = prepared.Evaluation.Positions
	}
	measured := []api.Timing{prepared.Timing}
	if prepared.Evaluation.Shards() > 1 {
		var times []api.Timing
		if ask.Parts, times, err = r.shards(ctx, h, ask, *prepared.Evaluation); err != nil {
			return EvaluateRunResult{}, err
		}
		measured = append(measured, times...)
	}
	out, err := sample(ctx, h, scope, api.Evaluate, "held-out problems", ask, (*api.Evaluated).Its)
	if err != nil {
		return EvaluateRunResult{}, err
	}
	r.progress.Final = &out.Summary
	r.at.enter(ctx, api.StageTimings)
	_, err = call[api.Done](ctx, api.RecordTimings, "measured times", api.RecordTimingsInput{Scope: scope,
		Timings: append(measured, out.Timing), Part: "run"})
	return EvaluateRunResult{Run: r.at.run, Recipe: prepared.Plan.Recipe, Seed: prepared.Plan.Seed, Step: r.at.step,
		Policy: policy, Summary: out.Summary}, err
}

// shards runs the shards of a large evaluation, several at a time, and returns their manifests and times in their
// order. A shard that fails leaves the others as they are: those that have committed are adopted by the next attempt.
func (r *evaluateRun) shards(ctx workflow.Context, h *home, in api.EvaluateInput, plan api.EvaluationPlan,
) (refs []schema.Ref, times []api.Timing, err error) {
	n := plan.Shards()
	refs, times = make([]schema.Ref, n), make([]api.Timing, n)
	r.progress.Evaluating = &EvaluatingLine{Shards: n, Problems: plan.Problems}
	err = sideBySideOf(ctx, n, func(ctx workflow.Context, i int) error {
		ask := api.EvaluateShardInput{EvaluateInput: in, Shard: i, First: i * plan.PerShard,
			Problems: min(plan.PerShard, plan.Problems-i*plan.PerShard)}
		summary := fmt.Sprintf("held-out problems, shard %d of %d", i+1, n)
		out, err := sample(ctx, h, in.Scope, api.EvaluateShard, summary, ask, (*api.EvaluatedShard).Its)
		if err != nil {
			return stageError{stage: api.StageEvaluate, shard: i, turn: -1, err: err}
		}
		refs[i], times[i] = out.Manifest, out.Timing
		r.progress.Evaluating.add(ask.Problems, out)
		return nil
	})
	return refs, times, err
}
