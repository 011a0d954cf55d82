package stack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"
)

// ErrLost says that the stack, or a part of it that the command needs, is permanently lost.
var ErrLost = errors.New("the local stack is lost")

// Lease is a command's hold on the stack. Its methods are safe for concurrent use. The command must close it.
type Lease struct {
	opts      Options
	existing  existing
	addresses Addresses
	ctx       context.Context // ends when the lease is closed
	cancel    context.CancelFunc

	mu     sync.Mutex
	link   *link // nil if nothing local is needed: then there is no supervisor
	err    error
	lost   chan struct{}
	closed bool
	peak   int64 // bytes; used only without a supervisor
}

func newLease(o Options, ex existing) *Lease {
	l := &Lease{opts: o, existing: ex, lost: make(chan struct{})}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	return l
}

// hear handles messages from the supervisor that do not answer a request.
func (l *Lease) hear(r reply) {
	if r.Kind == "progress" {
		l.opts.Progress(r.Text)
		return
	}
	l.lose(fmt.Errorf("%w: %w", ErrLost, r.failure()))
}

func (l *Lease) lose(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil && !l.closed {
		l.err = err
		close(l.lost)
	}
}

// Addresses returns where the servers are. The addresses do not change during the lease.
func (l *Lease) Addresses() Addresses { return l.addresses }

// Done returns a channel that is closed when the stack, or a part that this lease needs, is permanently lost. Err then
// says why, with the end of the part's log. A restart of a part or of the supervisor is a progress line, not a loss.
func (l *Lease) Done() <-chan struct{} { return l.lost }

// Err returns nil while the stack runs, else an error that wraps ErrLost.
func (l *Lease) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// over reports whether the lease was closed or lost.
func (l *Lease) over() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.closed || l.err != nil
}

// current returns the current connection.
func (l *Lease) current() *link {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.link
}

// PeakMB returns the highest memory, in MiB, of the whole stack and every joined command since this lease began or the
// peak was last reset: proportional set sizes, sampled twice a second. A supervisor that replaces a killed one starts
// counting from zero.
func (l *Lease) PeakMB(ctx context.Context, reset bool) (float64, error) {
	if l.current() == nil {
		return l.ownPeak(reset), nil
	}
	for {
		r, err := l.current().question(ctx, request{Op: "peak", Reset: reset})
		if err == nil || !errors.Is(err, errHungUp) || l.over() {
			return float64(r.Bytes) / (1 << 20), err
		}
		if !sleep(ctx, takeOverPause) { // another supervisor is starting
			return 0, fmt.Errorf("ask the stack's supervisor: %w", ctx.Err())
		}
	}
}

// Stays reports whether the servers go on when this lease ends: other commands hold the stack, or none of its parts is
// local.
func (l *Lease) Stays(ctx context.Context) bool {
	k := l.current()
	if k == nil {
		return true
	}
	r, err := k.question(ctx, request{Op: "peak"})
	return err == nil && r.Others > 0
}

// ownPeak returns the peak for a lease without a supervisor: the memory of this process and its children.
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

// Close ends the lease. The last command to close its lease waits until every part has stopped. A second call does
// nothing.
func (l *Lease) Close() error {
	l.mu.Lock()
	was, k := l.closed, l.link
	l.closed = true
	l.mu.Unlock()
	l.cancel() // ends a take-over in progress
	if was || k == nil {
		return nil
	}
	return leave(k, l.opts)
}

// sampleUntilClosed samples memory for a lease without a supervisor.
func (l *Lease) sampleUntilClosed() {
	t := time.NewTicker(samplePeriod)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			l.sampleOwn()
		case <-l.ctx.Done():
			return
		}
	}
}
