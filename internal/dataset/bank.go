package dataset

import (
	"context"
	"sync"

	"github.com/ropewalk/ropewalk/internal/refusal"
	"github.com/ropewalk/ropewalk/internal/seed"
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

// List returns the tasks of a split in the order of the files. There is at least one training task; there may be no
// held-out one.
func (b *Bank[T]) List(ctx context.Context, heldOut bool) ([]T, error) {
	tasks, err := b.read(ctx)
	switch {
	case heldOut:
		return tasks.HeldOut, err
	case err == nil && len(tasks.Train) == 0:
		err = refusal.Unusablef("all of the %d tasks are held out", len(tasks.HeldOut))
	}
	return tasks.Train, err
}

// Draw returns a task: the training task at a place in a run's order, where each task comes once before any repeats, or
// the held-out task at an index in the order that all runs share.
func (b *Bank[T]) Draw(ctx context.Context, heldOut bool, runSeed uint64, place, index int) (task T, err error) {
	tasks, err := b.List(ctx, heldOut)
	switch {
	case err != nil:
		return task, err
	case !heldOut:
		return tasks[b.train.At(runSeed, place)], nil
	case len(tasks) == 0:
		return task, refusal.Unusablef("none of the %d tasks is held out: set held_out, or a higher held_out_share",
			len(b.tasks.Train))
	}
	return tasks[b.heldOut.At(0, index)], nil
}

// Order is the seeded order of a list of tasks: an epoch holds every task once, and each epoch has another order. It is
// safe for concurrent use.
type Order struct {
	label string
	n     int

	mu   sync.Mutex
	kept map[epoch][]int // positions
}

// epochsKept is how many epochs an Order remembers. A step may begin in one epoch and end in the next.
const epochsKept = 2

type epoch struct{ seed, number uint64 }

// NewOrder returns the order of n tasks. The label separates its random stream from others.
func NewOrder(label string, n int) *Order { return &Order{label: label, n: n, kept: map[epoch][]int{}} }

// At returns the position of the task at a place in the order, for a list that is not empty.
func (o *Order) At(runSeed uint64, place int) int {
	e := epoch{runSeed, uint64(place / o.n)}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.kept[e] == nil {
		if len(o.kept) == epochsKept {
			clear(o.kept)
		}
		o.kept[e] = seed.Rand(o.label, e.seed, e.number).Perm(o.n)
	}
	return o.kept[e][place%o.n]
}
