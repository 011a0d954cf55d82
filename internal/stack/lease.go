package stack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"
)

// errLost says that the stack, or a server of it that the command needs, is permanently lost.
var errLost = errors.New("the local stack is lost")

// Lease is a command's hold on the stack. Its methods are safe for concurrent use. The command must close it.
type Lease struct {
	opts     Options
	files    layout
	existing existing
	uses     []*use             // of local servers, in the order in which they were started
	cancel   context.CancelFunc // ends keep
	kept     chan struct{}      // closed when keep has ended

	mu        sync.Mutex
	addresses Addresses
	err       error
	lost      chan struct{}
	closed    bool
	peak      int64 // bytes
}

// use is a lease's hold on one server.
type use struct {
	server string
	users  *lock // shared
	joined int   // process id of the supervisor under which the server was healthy
	since  time.Time
	deaths int // of supervisors, in quick succession
	told   int // process id of the supervisor whose lines were shown
	lines  int // number of its lines that were shown
}

// Addresses returns where the servers are. The addresses do not change during the lease.
func (l *Lease) Addresses() Addresses {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.addresses
}

// Done returns a channel that is closed when the stack, or a server that this lease needs, is permanently lost. Err
// then says why, with the end of the server's log. A restart of a server or of a supervisor is a progress line, not a
// loss.
func (l *Lease) Done() <-chan struct{} { return l.lost }

// Err returns nil while the stack runs, else why the stack is lost.
func (l *Lease) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// PeakMB returns the highest memory, in MiB, of this command and the servers that it uses since the lease began:
// proportional set sizes, sampled every two seconds.
func (l *Lease) PeakMB() float64 {
	l.sample()
	l.mu.Lock()
	defer l.mu.Unlock()
	return float64(l.peak) / (1 << 20)
}

// sample measures the memory of this process, of the supervisors, and of the descendants of both.
func (l *Lease) sample() {
	roots := []int{os.Getpid()}
	for _, u := range l.uses {
		if s, err := l.files.running(u.server); err == nil && s.PID > 0 {
			roots = append(roots, s.PID)
		}
	}
	now := memoryOf(roots)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.peak = max(l.peak, now)
}

// Stays reports whether the servers go on when this lease ends: other commands use all of them, or none of them is
// local.
func (l *Lease) Stays() bool {
	for _, u := range l.uses {
		if how, err := u.users.others(); err != nil || how != shared {
			return false
		}
	}
	return true
}

// Close ends the lease. The last command to close its lease waits until the servers have stopped. A second call does
// nothing.
func (l *Lease) Close() error {
	l.mu.Lock()
	was := l.closed
	l.closed = true
	l.mu.Unlock()
	if was {
		return nil
	}
	l.cancel()
	<-l.kept
	for _, u := range l.uses {
		_ = u.users.close() // nothing was written to it
	}
	limit := 3 * times.stopTimeout
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	for _, u := range l.uses {
		if !l.stopped(ctx, u.server) {
			return fmt.Errorf("stop the local stack: it is still running after %s; see %s", limit,
				l.files.supervisorLog())
		}
	}
	return nil
}

// stopped waits until a server has stopped, unless others use it. It returns false if the context ends first.
func (l *Lease) stopped(ctx context.Context, server string) bool {
	for {
		alive, err := l.files.supervised(server)
		if err != nil || !alive {
			return true
		}
		if how, err := lockedAs(l.files.users(server)); err != nil || how == shared {
			return true
		}
		if !sleep(ctx, 20*time.Millisecond) {
			return false
		}
	}
}
