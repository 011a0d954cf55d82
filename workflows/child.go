package workflows

import (
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
)

// child runs a child workflow and waits for its result. After a reset of the workflow, the child that the earlier
// execution started may still be open under the same id: the server terminates that child only after its parent.
// child then retries the start until the old child has ended.
func child(ctx workflow.Context, definition, in, out any) error {
	for range mostChildStarts {
		err := workflow.ExecuteChildWorkflow(ctx, definition, in).Get(ctx, out)
		if !temporal.IsWorkflowExecutionAlreadyStartedError(err) {
			return err
		}
		if err := workflow.Sleep(ctx, childStartsApart); err != nil {
			return err
		}
	}
	return workflow.ExecuteChildWorkflow(ctx, definition, in).Get(ctx, out)
}
