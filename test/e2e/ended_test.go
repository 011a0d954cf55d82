package e2e

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"github.com/ropewalk/ropewalk/internal/bench/idle"
	"github.com/ropewalk/ropewalk/workflows"
)

// A run that a person cancels or terminates takes the workflows of its shards with it.
func TestAnEndedRunEndsItsShards(t *testing.T) {
	c := idleWorkers(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for _, ends := range []struct {
		run  string
		end  func(id string) error
		want enumspb.WorkflowExecutionStatus
	}{
		{"cancelled-" + idle.Held, func(id string) error { return c.CancelWorkflow(ctx, id, "") },
			enumspb.WORKFLOW_EXECUTION_STATUS_CANCELED},
		{
			"terminated-" + idle.Held, func(id string) error { return c.TerminateWorkflow(ctx, id, "", "enough") },
			enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED,
		},
	} {
		t.Run(ends.run, func(t *testing.T) {
			_, err := c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: ends.run, TaskQueue: workflows.QueueCPU},
				workflows.TrainRunName,
				workflows.TrainRunInput{Run: ends.run, RecipeYAML: "2 30"})
			require.NoError(t, err)
			all := []string{ends.run, workflows.StepWorkflowID(ends.run, 1)}
			for shard := range 2 {
				all = append(all, workflows.ShardWorkflowID(ends.run, 1, shard))
			}
			have := func(want enumspb.WorkflowExecutionStatus) bool {
				for _, id := range all {
					d, err := c.DescribeWorkflowExecution(ctx, id, "")
					if err != nil || d.WorkflowExecutionInfo.Status != want {
						return false
					}
				}
				return true
			}
			eventually(t, func() bool { return have(enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING) }, "the shards run")
			require.NoError(t, ends.end(ends.run))
			eventually(t, func() bool { return have(ends.want) }, "the step and its shards end as the run does")
		})
	}
}
