package workflows

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/workflow"
)

// After a reset, the earlier execution's step workflow may stay open for a moment.
func TestAChildWaitsUntilItsIDIsFree(t *testing.T) {
	err := childBesideOpen(t, 5*time.Second)
	require.NoError(t, err)
}

func TestAChildWhoseIDStaysTakenFails(t *testing.T) {
	err := childBesideOpen(t, time.Hour)
	require.ErrorContains(t, err, "already started")
}

// childBesideOpen runs a child whose id another workflow uses for a while.
func childBesideOpen(t *testing.T, while time.Duration) error {
	t.Helper()
	env := newEnvironment()
	env.SetWorkflowRunTimeout(24 * time.Hour)
	held := func(ctx workflow.Context, length time.Duration) (string, error) {
		return "done", workflow.Sleep(ctx, length)
	}
	env.RegisterWorkflow(held)
	parent := func(ctx workflow.Context) error {
		ctx = workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{WorkflowID: "run/step=1"})
		if err := workflow.ExecuteChildWorkflow(ctx, held, while).GetChildWorkflowExecution().Get(ctx,
			nil); err != nil {
			return err
		}
		var out string
		if err := child(ctx, held, time.Second, &out); err != nil {
			return err
		}
		if out != "done" {
			return errors.New("the child's result is missing")
		}
		return nil
	}
	env.ExecuteWorkflow(parent)
	return env.GetWorkflowError()
}
