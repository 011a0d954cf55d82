package service

import (
	"sync/atomic"
)

// mostHeld is how many bytes of answers may wait for a lane's reader before the lane's jobs have to
// wait as well: a client that does not read holds up nobody but itself.
const mostHeld = 16 << 20

// lane is where answers go: one stream, or one HTTP request.
type lane struct {
	// deliver hands over an answer. It must not block.
	deliver func(answer)
	held    atomic.Int64 // bytes of answers that were delivered and not yet taken
	gone    atomic.Bool  // nobody reads any more

	jobs   []*job // that wait; the queue's lock guards them
	listed bool   // among the queue's lanes
}

// give delivers an answer if anybody reads.
func (l *lane) give(a answer) {
	if !l.gone.Load() {
		l.held.Add(a.size())
		l.deliver(a)
	}
}

func (l *lane) full() bool { return l.held.Load() > mostHeld && !l.gone.Load() }
