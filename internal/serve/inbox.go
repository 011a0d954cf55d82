package serve

import (
	"cmp"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ropewalk/ropewalk/policy"
)

// inbox collects what the scheduler brings for a request. A slow reader holds no one up.
type inbox struct {
	began   time.Time
	started atomic.Bool // whether a row has joined the batch
	ready   chan struct{}

	mu      sync.Mutex
	events  []choiceEvent
	weights string
	err     *apiError
}

// choiceEvent is an event of one of a request's choices.
type choiceEvent struct {
	choice int
	policy.BatchEvent
}

func newInbox() *inbox { return &inbox{began: time.Now(), ready: make(chan struct{}, 1)} }

// start notes the weights that a request's rows are generated with.
func (b *inbox) start(weights string) {
	if b.started.Swap(true) {
		return
	}
	b.mu.Lock()
	b.weights = weights
	b.mu.Unlock()
}

func (b *inbox) put(choice int, e policy.BatchEvent) {
	b.mu.Lock()
	b.events = append(b.events, choiceEvent{choice, e})
	b.mu.Unlock()
	b.notify()
}

// fail ends the request with an error.
func (b *inbox) fail(e *apiError) {
	b.mu.Lock()
	b.err = cmp.Or(b.err, e)
	b.mu.Unlock()
	b.notify()
}

func (b *inbox) notify() {
	select {
	case b.ready <- struct{}{}:
	default:
	}
}

// take returns what has come since the last call.
func (b *inbox) take() (events []choiceEvent, weights string, err *apiError) {
	b.mu.Lock()
	defer b.mu.Unlock()
	events, b.events = b.events, nil
	return events, b.weights, b.err
}
