package workflows

import (
	"errors"

	"go.temporal.io/sdk/workflow"
)

// sideBySideOf calls f for 0…n−1, sideBySide calls at a time, and waits for all calls that have started. It starts no
// further call after a failure.
func sideBySideOf(ctx workflow.Context, n int, f func(ctx workflow.Context, i int) error) error {
	failures := make([]error, n)
	failed := false
	open := workflow.NewSemaphore(ctx, sideBySide)
	group := workflow.NewWaitGroup(ctx)
	for i := range n {
		if err := open.Acquire(ctx, 1); err != nil {
			failures[i] = err
			break
		}
		if failed {
			break
		}
		group.Add(1)
		workflow.Go(ctx, func(ctx workflow.Context) {
			defer group.Done()
			defer open.Release(1)
			failures[i] = f(ctx, i)
			failed = failed || failures[i] != nil
		})
	}
	group.Wait(ctx)
	return errors.Join(failures...)
}
