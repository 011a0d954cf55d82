package workflows

import (
	"errors"
	"fmt"

	"go.temporal.io/sdk/workflow"

	"github.com/ropewalk/ropewalk/activities/wire"
)

// ServeRanks has hosts of the queue gpu run ranks of an engine that another host's worker opens: that worker starts this
// workflow, and cancels it when it closes the engine. It ends by itself where the engine's hosts have all ended.
func ServeRanks(ctx workflow.Context, in wire.RanksInput) ([]wire.RanksServed, error) {
	if in.Members < 1 || in.Address == "" || in.Gang == "" {
		return nil, badInput("members, address, gang: an engine's host and how many others it wants, got %+v", in)
	}
	workflow.SetCurrentDetails(ctx, fmt.Sprintf("ranks of an engine of host **%s**", in.Leader))
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskQueue: QueueGPU, StartToCloseTimeout: ranksLimit, HeartbeatTimeout: heartbeat, RetryPolicy: retryRanks,
		Summary: "ranks of an engine of host " + in.Leader, WaitForCancellation: true,
	})
	futures := make([]workflow.Future, in.Members)
	for i := range futures {
		futures[i] = workflow.ExecuteActivity(ctx, wire.ServeRanks, in)
	}
	out, failures := make([]wire.RanksServed, in.Members), make([]error, in.Members)
	for i, f := range futures {
		failures[i] = f.Get(ctx, &out[i])
	}
	return out, errors.Join(failures...)
}
