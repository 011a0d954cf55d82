package workflows

import (
	"errors"

	"go.temporal.io/sdk/workflow"
)

// sideBySideOf calls f for 0…n−1, sideBySide at a time, and waits for all that were begun. After a
// failure no further one begins.
func sideBySideOf(ctx workflow.Context, n int, f func(ctx workflow.Context, i int) error) error {
	failures := make([]error, n)
	failed := false
	slots := workflow.NewSemaphore(ctx, sideBySide)
	group := workflow.NewWaitGroup(ctx)
	for i := range n {
		if err := slots.Acquire(ctx, 1); err != nil {
			failures[i] = err
			break
		}
		if failed {
			break
		}
		group.Add(1)
		workflow.Go(ctx, func(ctx workflow.Context) {
			defer group.Done()
			defer slots.Release(1)
			failures[i] = f(ctx, i)
			failed = failed || failures[i] != nil
		})
	}
	group.Wait(ctx)
	return errors.Join(failures...)
}
