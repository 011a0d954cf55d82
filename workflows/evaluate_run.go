package workflows

import (
	"fmt"

	"go.temporal.io/sdk/workflow"

	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/schema/stages"
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
	shell
	in     EvaluateInput
	result EvaluateRunResult
}

// EvaluateRun measures one policy, which another run has made, in an environment that its recipe names. It has a
// record of its own: the recipe, the policy's manifest and the evaluation. Committed stages are adopted, so a run that
// is started again continues where it was.
func EvaluateRun(ctx workflow.Context, in EvaluateInput) (EvaluateRunResult, error) {
	if err := in.validate(); err != nil {
		return EvaluateRunResult{}, refuse(ctx, err)
	}
	r := &evaluateRun{in: in, shell: shell{noSkip: "the evaluation is all that this run is for"}}
	if err := r.open(ctx, in.Run, in.RecipeFile); err != nil {
		return EvaluateRunResult{}, err
	}
	err := r.attempts(ctx, r.attempt)
	return r.result, err
}

// attempt prepares the run, evaluates and records the measured times.
func (r *evaluateRun) attempt(ctx workflow.Context) error {
	r.at.enter(ctx, schema.StagePrepare)
	in := api.PrepareInput{Run: r.at.run, Kind: "evaluate", RecipeYAML: r.in.RecipeYAML, RecipeFile: r.in.RecipeFile,
		Overrides: r.in.Set, Resume: r.in.Resume}
	if r.in.LatestOf != "" {
		in.LatestOf = r.in.LatestOf
	} else if !r.in.Resume {
		in.Evaluates = &r.in.Policy
	}
	prepared, err := call[api.Prepared](ctx, r.limits, api.PrepareRun, "resolve and commit the recipe", in)
	if err != nil {
		return err
	}
	policy := *prepared.Evaluates
	r.at.step = prepared.Plan.Steps
	r.progress.plan(r.at.run, prepared.Plan)
	r.progress.Notes = prepared.Notes
	r.at.enter(ctx, schema.StageEvaluate)
	scope, h := scoped(r.at.run, r.at.step, prepared), newHome(ctx, "", prepared.Plan, r.limits)
	ask := api.EvaluateInput{Scope: scope, Policy: policy, Tag: tagOwn}
	if prepared.Evaluation != nil {
		ask.Positions = prepared.Evaluation.Positions
	}
	measured := []api.Timing{prepared.Timing}
	if prepared.Evaluation.Shards() > 1 {
		var times []api.Timing
		if ask.Parts, times, err = r.shards(ctx, h, ask, *prepared.Evaluation); err != nil {
			return err
		}
		measured = append(measured, times...)
	}
	var out api.Evaluated
	if err := sample(ctx, h, scope, api.Evaluate, "held-out problems", ask, &out); err != nil {
		return err
	}
	r.progress.Final = &out.Summary
	r.result = EvaluateRunResult{Run: r.at.run, Recipe: prepared.Plan.Recipe, Seed: prepared.Plan.Seed,
		Step: r.at.step, Policy: policy, Summary: out.Summary}
	r.at.enter(ctx, stages.Timings)
	_, err = call[api.Done](ctx, r.limits, api.RecordTimings, "measured times",
		api.RecordTimingsInput{Scope: scope, Timings: append(measured, out.Timing), Part: "run"})
	if err == nil {
		r.states.success(ctx, out.Summary)
	}
	return err
}

// shards runs the shards of a large evaluation, several at a time, and returns their manifests and times in their
// order. A shard that fails leaves the others as they are: those that have committed are adopted by the next attempt.
func (r *evaluateRun) shards(ctx workflow.Context, h *home, in api.EvaluateInput, plan api.EvaluationPlan,
) (refs []schema.Ref, times []api.Timing, err error) {
	n := plan.Shards()
	refs, times = make([]schema.Ref, n), make([]api.Timing, n)
	r.progress.Evaluating = &EvaluatingLine{Shards: n, Problems: plan.Problems}
	err = each(ctx, sideBySide, n, func(ctx workflow.Context, i int) error {
		ask := api.EvaluateShardInput{EvaluateInput: in, Shard: i, First: i * plan.PerShard,
			Problems: min(plan.PerShard, plan.Problems-i*plan.PerShard)}
		summary := fmt.Sprintf("held-out problems, shard %d of %d", i+1, n)
		var out api.EvaluatedShard
		if err := sample(ctx, h, in.Scope, api.EvaluateShard, summary, ask, &out); err != nil {
			return stageError{stage: schema.StageEvaluate, shard: i, turn: -1, err: err}
		}
		refs[i], times[i] = out.Manifest, out.Timing
		r.progress.Evaluating.add(ask.Problems, out)
		return nil
	})
	return refs, times, err
}
