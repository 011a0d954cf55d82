package pipelinetest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"github.com/ropewalk/ropewalk/schema/stages"
	"github.com/ropewalk/ropewalk/store/mem"
)

// noted is a test that notes what fails it.
type noted struct {
	testing.TB
	said []string
}

func (n *noted) Errorf(format string, args ...any) {
	n.said = append(n.said, fmt.Sprintf(format, args...))
}

// What is not granted fails the test on the queue sandbox, and on no other.
func TestGrantsAreChecked(t *testing.T) {
	found := &noted{TB: t}
	objects := grantedOnly(found, mem.New())
	suite := &testsuite.WorkflowTestSuite{}
	env := suite.NewTestWorkflowEnvironment()
	env.RegisterActivityWithOptions(func(ctx context.Context) error { return objects.Delete(ctx, "runs/run=a/x") },
		activity.RegisterOptions{Name: "forget"})
	env.ExecuteWorkflow(func(ctx workflow.Context) error {
		for _, queue := range []string{stages.CPU, stages.Sandbox} {
			ctx := workflow.WithActivityOptions(ctx, workflow.ActivityOptions{TaskQueue: queue,
				StartToCloseTimeout: time.Minute})
			if err := workflow.ExecuteActivity(ctx, "forget").Get(ctx, nil); err != nil {
				return err
			}
		}
		return nil
	})
	require.NoError(t, env.GetWorkflowError())
	require.Equal(t, []string{"forget, on the queue sandbox, wants to delete runs/run=a/x, which internal/grants " +
		"does not permit"}, found.said)
}
