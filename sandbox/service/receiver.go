package service

import (
	"sync/atomic"
)

// mostHeld is how many bytes of answers may wait to be read by a receiver before the receiver's jobs have to wait too.
// So a client that does not read delays only itself.
const mostHeld = 16 << 20

// receiver is where answers go: one stream, or one HTTP request.
type receiver struct {
	client *client // whose it is
	// deliver passes on an answer. It must not block.
	deliver func(answer)
	held    atomic.Int64 // bytes of answers that were delivered but not read
	gone    atomic.Bool  // the client no longer reads

	jobs   []*job // the waiting jobs; guarded by the queue's lock
	listed bool   // whether it is among the queue's receivers
}

// send delivers an answer if the client still reads.
func (r *receiver) send(a answer) {
	if !r.gone.Load() {
		r.held.Add(a.size())
		r.deliver(a)
	}
}

func (r *receiver) full() bool { return r.held.Load() > mostHeld && !r.gone.Load() }
