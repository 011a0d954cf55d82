package workflows

import (
	"fmt"

	"go.temporal.io/sdk/workflow"

	"github.com/ropewalk/ropewalk/schema"
)

// hold ends the workflow between two steps, with the evaluations that are due. A workflow that is started with the same
// recipe goes on from there.
func (r *trainRun) hold(ctx workflow.Context) (TrainRunResult, error) {
	r.later.flush(ctx)
	if err := r.idle(ctx); err != nil {
		return TrainRunResult{}, err
	}
	if err := r.settleDue(ctx); err != nil {
		return TrainRunResult{}, err
	}
	if err := r.recorded(ctx); err != nil {
		return TrainRunResult{}, err
	}
	r.compactions.wait(ctx)
	done := r.next - 1
	r.states.leave(ctx, schema.StateInterrupted, "", fmt.Sprintf("its experiment holds it after step %d", done))
	out := TrainRunResult{Run: r.run, Recipe: r.prepared.Plan.Recipe, Seed: r.prepared.Plan.Seed, Steps: done,
		Policy: r.policy, Held: true, Machine: r.prepared.Machine}
	return out, workflow.Await(ctx, func() bool { return workflow.AllHandlersFinished(ctx) })
}
