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
