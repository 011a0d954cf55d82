package dataset

import (
	"sync"

	"github.com/ropewalk/ropewalk/internal/seed"
)

// Order is the seeded order of a list of tasks: an epoch holds every task once, and each epoch has another order. It is
// safe for concurrent use.
type Order struct {
	label string
	n     int

	mu     sync.Mutex
	kept   [epochsKept]epoch
	oldest int
}

// epochsKept is how many epochs an Order remembers. A step may begin in one epoch and end in the next.
const epochsKept = 2

type epoch struct {
	seed, number uint64
	positions    []int
}

// NewOrder returns the order of n tasks. The label separates its random stream from others.
func NewOrder(label string, n int) *Order { return &Order{label: label, n: n} }

// At returns the position of the task at a place in the order, for a list that is not empty.
func (o *Order) At(runSeed uint64, place int) int {
	number := uint64(place / o.n)
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, e := range o.kept {
		if e.positions != nil && e.seed == runSeed && e.number == number {
			return e.positions[place%o.n]
		}
	}
	e := epoch{seed: runSeed, number: number, positions: seed.Rand(o.label, runSeed, number).Perm(o.n)}
	o.kept[o.oldest] = e
	o.oldest = (o.oldest + 1) % epochsKept
	return e.positions[place%o.n]
}
