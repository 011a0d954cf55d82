package workflows

import (
	"slices"

	"go.temporal.io/sdk/workflow"

	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/schema"
)

// Due is an evaluation of the run's policy that waits for the next step, to run alongside it.
type Due struct {
	Input api.EvaluateInput `json:"input"`
	// Timings are measured times of the same step that are recorded with the evaluation's.
	Timings []api.Timing `json:"timings,omitempty"`
}

// measure evaluates the run's policy after a step that was taken under prepared: alongside the next step, if there is
// one and the engine that generates does not also train, and else at once. It records the given times with those of
// the evaluation.
func (r *trainRun) measure(ctx workflow.Context, step int, tag string, prepared api.Prepared,
	timings ...api.Timing) error {
	d := r.dueAfter(step, tag, prepared, timings...)
	if prepared.Plan.Evaluations == api.EvaluateAlongside && r.next <= prepared.Plan.Steps {
		r.due = &d
		return nil
	}
	return r.measureNow(ctx, d)
}

// dueAfter is the evaluation of the run's policy after a step.
func (r *trainRun) dueAfter(step int, tag string, prepared api.Prepared, timings ...api.Timing) Due {
	return Due{Timings: timings, Input: api.EvaluateInput{Scope: scoped(r.run, step, prepared), Policy: r.policy,
		Tag: tag}}
}

// measureNow is measure for an evaluation that nothing runs alongside.
func (r *trainRun) measureNow(ctx workflow.Context, d Due) error {
	evaluated, done, err := r.evaluate(ctx, d.Input)
	if err != nil {
		return err
	}
	if done {
		r.measured(ctx, d, evaluated)
	}
	r.compact(d.Input.Step)
	return nil
}

// measured takes the result of an evaluation.
func (r *trainRun) measured(ctx workflow.Context, d Due, evaluated api.Evaluated) {
	r.states.success(ctx, evaluated.Summary)
	if d.Input.Step == api.InitStep {
		r.progress.Warm = &evaluated.Summary
	} else {
		r.progress.measured(d.Input.Step, evaluated.Summary)
		r.pruner.evaluated = append(r.pruner.evaluated,
			api.EvaluatedStep{Step: d.Input.Step, Success: evaluated.Summary.Success})
	}
	r.recordings.start(ctx, api.RecordTimingsInput{Scope: d.Input.Scope, Timings: append(d.Timings, evaluated.Timing),
		Part: "run"})
}

// settleDue runs the evaluation that waits for the next step, because that step does not begin yet.
func (r *trainRun) settleDue(ctx workflow.Context) error {
	if r.due == nil {
		return nil
	}
	d := *r.due
	r.due = nil
	return r.measureNow(ctx, d)
}

// tookAlongside takes the evaluation that ran alongside a step. It is not there if a person has chosen to leave it
// out.
func (r *trainRun) tookAlongside(ctx workflow.Context, out *api.Evaluated) error {
	if r.due == nil || out == nil {
		return r.settleDue(ctx)
	}
	d := *r.due
	r.due = nil
	r.measured(ctx, d, *out)
	r.compact(d.Input.Step)
	return nil
}

// skipEvaluation allows a run to continue without an evaluation after a step.
func skipEvaluation(tag string) func([]StageFailure) skipping {
	if tag != api.TagStep {
		return mandatory("the run's result compares the policy before and after")
	}
	return func([]StageFailure) skipping {
		return skipping{words: "this evaluation is left out; training goes on"}
	}
}

// skipAlongside is skipEvaluation for the evaluation alongside a step. Where anything else has failed, too, other
// decides.
func (r *trainRun) skipAlongside(other func([]StageFailure) skipping,
) func([]StageFailure) skipping {
	return func(all []StageFailure) skipping {
		isOther := func(f StageFailure) bool { return f.Stage != schema.StageEvaluate }
		if r.due == nil || slices.ContainsFunc(all, isOther) {
			return other(all)
		}
		s := skipEvaluation(r.due.Input.Tag)(all)
		s.enact = func() {
			step := r.due.Input.Step
			r.due = nil
			r.compact(step)
		}
		return s
	}
}

// Selected holds a step's prompts that were selected while the step before ran.
type Selected struct {
	Step   int        `json:"step"`
	Config schema.Ref `json:"config"` // the recipe that they were selected under
	Done   api.Done   `json:"done"`
}
