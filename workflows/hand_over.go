package workflows

import (
	"go.temporal.io/sdk/workflow"
)

// HandOver is a run between two builds of the workers. A workflow of a deployment stays on its build, and so does what
// it continues as, because TrainRun is pinned. HandOver is not: the build that the run leaves runs it, and what it
// continues as goes to the build that is current then. So no build replays a history that another one has made.
func HandOver(ctx workflow.Context, in TrainRunInput) (TrainRunResult, error) {
	if in.invalid != "" || in.Continued == nil {
		return TrainRunResult{}, badInput("HandOver: only a TrainRun that continues as new starts it")
	}
	r := &trainRun{in: in, run: in.Run}
	if r.run == "" {
		r.run = workflow.GetInfo(ctx).WorkflowExecution.ID
	}
	r.restore(*in.Continued)
	if err := answer(ctx, QueryProgress, func() (Progress, error) { return r.progress, nil }); err != nil {
		return TrainRunResult{}, err
	}
	return TrainRunResult{}, workflow.NewContinueAsNewError(ctx, TrainRun, in)
}
