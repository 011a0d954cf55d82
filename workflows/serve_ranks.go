package workflows

import (
	"errors"
	"fmt"

	"go.temporal.io/sdk/workflow"

	"github.com/ropewalk/ropewalk/internal/step/api"
)

// ServeRanks lets hosts of the queue gpu run ranks of an engine that another host's worker opens. That worker starts
// this workflow and cancels it when it closes the engine. The workflow ends by itself when all hosts of the engine
// have ended.
func ServeRanks(ctx workflow.Context, in api.RanksInput) ([]api.RanksServed, error) {
	if in.Members < 1 || in.Address == "" || in.Gang == "" {
		return nil, badInput("members, address, gang: an engine's host and how many others it wants, got %+v", in)
	}
	workflow.SetCurrentDetails(ctx, fmt.Sprintf("ranks of an engine of host **%s**", in.Leader))
	o := options(nil, api.ServeRanks, "ranks of an engine of host "+in.Leader)
	o.WaitForCancellation = true
	ctx = workflow.WithActivityOptions(ctx, o)
	futures := make([]workflow.Future, in.Members)
	for i := range futures {
		futures[i] = workflow.ExecuteActivity(ctx, api.ServeRanks, in)
	}
	out, failures := make([]api.RanksServed, in.Members), make([]error, in.Members)
	for i, f := range futures {
		failures[i] = f.Get(ctx, &out[i])
	}
	return out, errors.Join(failures...)
}
