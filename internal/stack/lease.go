package stack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"
)

// ErrLost says that the stack, or a part of it that the command needs, has gone for good.
var ErrLost = errors.New("the local stack is lost")

// Lease is a command's hold on the stack. Its methods are safe for concurrent use. Close it, always.
type Lease struct {
	wire      *wire // nil if nothing local is needed, so that there is no supervisor
	opts      Options
	addresses Addresses
	answers   chan reply // ready, failed, stopping, peak, left
	ended     chan struct{}

	ask sync.Mutex // one question at a time

	mu     sync.Mutex
	err    error
	lost   chan struct{}
	closed bool
	peak   int64 // bytes; without a supervisor only
}

// newLease starts to read what the supervisor says.
func newLease(w *wire, o Options) *Lease {
	l := &Lease{wire: w, opts: o, answers: make(chan reply, 8), ended: make(chan struct{}), lost: make(chan struct{})}
	if w != nil {
		go l.read()
	}
	return l
}

func (l *Lease) read() {
	defer close(l.ended)
	for {
		var r reply
		if err := l.wire.receive(&r); err != nil {
			l.lose(fmt.Errorf("%w: its supervisor has ended; see %s", ErrLost, layout{l.opts.Root}.supervisorLog()))
			return
		}
		switch r.Kind {
		case "progress":
			l.opts.Progress(r.Text)
		case "lost":
			l.lose(fmt.Errorf("%w: %s", ErrLost, r.Text))
		default:
			l.answers <- r
		}
	}
}

func (l *Lease) lose(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil && !l.closed {
		l.err = err
		close(l.lost)
	}
}

// answersTo lists the kinds of reply that answer each request.
var answersTo = map[string][]string{"join": {"ready", "failed", "stopping"}, "peak": {"peak"}, "leave": {"left", "stopping"}}

// question sends a request and returns its answer. The late answer of a question that was given up
// is passed over.
func (l *Lease) question(ctx context.Context, q request) (reply, error) {
	l.ask.Lock()
	defer l.ask.Unlock()
	if err := l.wire.send(q); err != nil {
		return reply{}, fmt.Errorf("ask the stack's supervisor: %w", err)
	}
	for {
		select {
		case r := <-l.answers:
			if slices.Contains(answersTo[q.Op], r.Kind) {
				return r, nil
			}
		case <-l.ended:
			return reply{}, fmt.Errorf("ask the stack's supervisor: %w", errHungUp)
		case <-ctx.Done():
			return reply{}, fmt.Errorf("ask the stack's supervisor: %w", ctx.Err())
		}
	}
}

// errHungUp says that the supervisor closed the connection instead of answering.
var errHungUp = errors.New("it has hung up")

// Addresses returns where the servers are.
func (l *Lease) Addresses() Addresses { return l.addresses }

// Done is closed when the stack, or a part that this lease needs, is lost for good; Err then says
// why, with the end of the part's log. Restarts are progress lines, not losses.
func (l *Lease) Done() <-chan struct{} { return l.lost }

// Err returns nil while the stack is there, else an error that wraps ErrLost.
func (l *Lease) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// PeakMB returns the highest memory, in MiB, of the whole stack and every joined command since this
// lease began or was last reset: proportional set sizes, sampled twice a second.
func (l *Lease) PeakMB(ctx context.Context, reset bool) (float64, error) {
	if l.wire == nil {
		return l.ownPeak(reset), nil
	}
	r, err := l.question(ctx, request{Op: "peak", Reset: reset})
	return float64(r.Bytes) / (1 << 20), err
}

// ownPeak serves a lease without a supervisor: the memory of this process and its children.
func (l *Lease) ownPeak(reset bool) float64 {
	l.sampleOwn()
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.peak
	if reset {
		l.peak = 0
	}
	return float64(p) / (1 << 20)
}

func (l *Lease) sampleOwn() {
	now := memoryOf([]int{os.Getpid()})
	l.mu.Lock()
	defer l.mu.Unlock()
	l.peak = max(l.peak, now)
}

// Close gives the lease back. The last one out waits until every part has stopped. Closing again
// does nothing.
func (l *Lease) Close() error {
	l.mu.Lock()
	was := l.closed
	l.closed = true
	l.mu.Unlock()
	if was {
		return nil
	}
	if l.wire == nil {
		close(l.ended)
		return nil
	}
	defer l.wire.close()
	grace := 3 * l.opts.tuning.stopTimeout
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	r, err := l.question(ctx, request{Op: "leave"})
	if err != nil || !r.Last {
		return nil // others use it, or it has ended: there is nothing to wait for
	}
	select {
	case <-l.ended:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("stop the local stack: it still runs after %s; see %s", grace, layout{l.opts.Root}.supervisorLog())
	}
}

// sampleUntilClosed serves a lease without a supervisor.
func (l *Lease) sampleUntilClosed() {
	t := time.NewTicker(samplePeriod)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			l.sampleOwn()
		case <-l.ended:
			return
		}
	}
}
