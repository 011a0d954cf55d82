package dataset

import (
	"context"
	"sync"

	"github.com/ropewalk/ropewalk/internal/refusal"
)

// Bank reads tasks when the first one is drawn, and gives them in a seeded order. It is safe for concurrent use.
type Bank[T any] struct {
	label string
	load  func(ctx context.Context) (Tasks[T], error)

	mu             sync.Mutex
	tasks          *Tasks[T]
	train, heldOut *Order
}

// NewBank returns a bank of the tasks that load reads. The label separates its random streams from others.
func NewBank[T any](label string, load func(ctx context.Context) (Tasks[T], error)) *Bank[T] {
	return &Bank[T]{label: label, load: load}
}

// read returns the tasks. A failure is not kept, because a remote file may be there at the next attempt.
func (b *Bank[T]) read(ctx context.Context) (Tasks[T], error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.tasks == nil {
		tasks, err := b.load(ctx)
		if err != nil {
			return Tasks[T]{}, err
		}
		b.train, b.heldOut = NewOrder(b.label+" train", len(tasks.Train)), NewOrder(b.label+" held-out",
			len(tasks.HeldOut))
		b.tasks = &tasks
	}
	return *b.tasks, nil
}

// Train returns the training tasks in the order of the files; there is at least one.
func (b *Bank[T]) Train(ctx context.Context) ([]T, error) {
	tasks, err := b.read(ctx)
	if err == nil && len(tasks.Train) == 0 {
		err = refusal.Unusablef("all of the %d tasks are held out", len(tasks.HeldOut))
	}
	return tasks.Train, err
}

// HeldOut returns the held-out tasks in the order of the files; there may be none.
func (b *Bank[T]) HeldOut(ctx context.Context) ([]T, error) {
	tasks, err := b.read(ctx)
	return tasks.HeldOut, err
}

// AtTrain returns the training task at a place in a run's order. Each task comes once before any repeats.
func (b *Bank[T]) AtTrain(ctx context.Context, runSeed uint64, place int) (task T, err error) {
	tasks, err := b.Train(ctx)
	if err != nil {
		return task, err
	}
	return tasks[b.train.At(runSeed, place)], nil
}

// AtHeldOut returns the held-out task at a place in the order that all runs share.
func (b *Bank[T]) AtHeldOut(ctx context.Context, place int) (task T, err error) {
	tasks, err := b.read(ctx)
	if err != nil {
		return task, err
	}
	if len(tasks.HeldOut) == 0 {
		return task, refusal.Unusablef("none of the %d tasks is held out: set held_out, or a higher held_out_share",
			len(tasks.Train))
	}
	return tasks.HeldOut[b.heldOut.At(0, place)], nil
}
