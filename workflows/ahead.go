package workflows

import (
	"fmt"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/schema"
)

// ahead samples the steps of a pipelined run, one after the other, up to the lag beyond the step that is updated.
type ahead struct {
	next    int // the first step that is not sampled
	running bool
	failed  int // a step whose sampling failed: it samples itself, and reports why it cannot
	made    map[int]aheadStep
}

// aheadStep is a step that is sampled and not yet taken. The settings that it was made under may have changed since.
type aheadStep struct {
	sampled SampledStep
	gen     int
	config  schema.Ref
}

// sampleAhead starts to sample the steps that the policies at hand allow, if they are not being sampled already.
func (r *trainRun) sampleAhead(ctx workflow.Context) {
	a := &r.ahead
	if a.next < r.next {
		a.next = r.next
	}
	if r.prepared.Plan.Staleness == 0 || a.running || a.failed == r.next {
		return
	}
	if a.made == nil {
		a.made = map[int]aheadStep{}
	}
	a.running = true
	workflow.Go(ctx, func(ctx workflow.Context) {
		defer func() { a.running = false }()
		for r.mayGoAhead(ctx) {
			if err := r.sampleNext(ctx); err != nil {
				if !temporal.IsCanceledError(err) {
					a.failed = a.next
					_, text := failure(err)
					workflow.GetLogger(ctx).Warn("sample a step ahead", "run", r.run, "step", a.next, "error", text)
				}
				return
			}
		}
	})
}

// mayGoAhead waits for changes of the settings, and reports whether another step can be sampled. A change takes effect
// at the first step whose sampling has not begun.
func (r *trainRun) mayGoAhead(ctx workflow.Context) bool {
	settled := func() bool { return r.amending == 0 && r.unsettled == nil }
	if workflow.Await(ctx, settled) != nil {
		return false
	}
	step := r.ahead.next
	plan := r.amendments.at(step, r.prepared).Plan
	return step <= r.next+plan.Staleness && step <= plan.Steps
}

// sampleNext samples the next step.
func (r *trainRun) sampleNext(ctx workflow.Context) error {
	a := &r.ahead
	step := a.next
	in := r.stepInput(step)
	in.SelectNext = in.Prepared.Plan.PromptsAhead && step < in.Prepared.Plan.Steps
	r.progress.Sampling = step
	r.show(ctx)
	var out SampledStep
	err := child(r.sampleChild(ctx, step), SampleStep, in, &out)
	r.progress.Sampling = 0
	if err != nil {
		return err
	}
	a.made[step], a.next = aheadStep{out, in.Gen, in.Prepared.Manifest}, step+1
	r.selected = out.Next
	return nil
}

func (r *trainRun) sampleChild(ctx workflow.Context, step int) workflow.Context {
	return workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{
		WorkflowID:    SampleWorkflowID(r.run, step),
		StaticSummary: fmt.Sprintf("sample step %d of %d of %s", step, r.prepared.Plan.Steps, r.run),
		TypedSearchAttributes: temporal.NewSearchAttributes(attrRunID.ValueSet(r.run), attrStep.ValueSet(int64(step)),
			attrStage.ValueSet(schema.StageRollout)),
	})
}

// awaitSampled waits until the next step is sampled, or is to sample itself.
func (r *trainRun) awaitSampled(ctx workflow.Context) error {
	if r.prepared.Plan.Staleness == 0 {
		return nil
	}
	err := workflow.Await(ctx, func() bool {
		_, made := r.ahead.made[r.next]
		return made || !r.ahead.running
	})
	if err != nil {
		return fmt.Errorf("wait for the rollout of step %d: %w", r.next, err)
	}
	return nil
}

// idle waits until no step is being sampled ahead, so that an evaluation has the sampler to itself, and so that no
// child is lost when the run continues as new.
func (r *trainRun) idle(ctx workflow.Context) error {
	if !r.ahead.running {
		return nil
	}
	return workflow.Await(ctx, func() bool { return !r.ahead.running })
}

// take completes the input of a step with its rollout, if it was sampled under the settings that the step has now.
func (a *ahead) take(in *TrainStepInput) {
	if made, ok := a.made[in.Step]; ok && made.gen == in.Gen && made.config == in.Prepared.Manifest {
		in.Sampled = &made.sampled
	}
}

// advance makes the policy after the next step the run's. A pipelined run keeps the earlier ones that the coming steps
// are sampled from.
func (r *trainRun) advance(policy api.PolicyRef) {
	r.earlier = append(r.earlier, r.policy)
	if n := len(r.earlier) - r.prepared.Plan.Staleness; n > 0 {
		r.earlier = append([]api.PolicyRef(nil), r.earlier[n:]...)
	}
	delete(r.ahead.made, r.next)
	r.policy, r.next = policy, r.next+1
}

// stepInput is the input of a step, or of its sampling alone.
func (r *trainRun) stepInput(step int) TrainStepInput {
	in := TrainStepInput{
		Run: r.run, Step: step, Gen: r.amendments.generation(step), Prepared: r.amendments.at(step, r.prepared),
		Policy: r.policy, Buffer: r.buffer, Home: r.home,
	}
	if lag := min(in.Prepared.Plan.Staleness, step-1); lag > 0 { // in updates
		sampler := r.policy
		// That is the one after step next − 1, and the step is sampled from the one after step − 1 − lag.
		if back := (r.next - 1) - (step - 1 - lag); back > 0 {
			sampler = r.earlier[max(len(r.earlier)-back, 0)]
		}
		in.Sampling, in.Lag = &sampler, lag
	}
	if s := r.selected; s != nil && s.Step == step && s.Config == in.Prepared.Manifest {
		in.Prompts = &s.Done
	}
	return in
}
