package session

import (
	"context"
	"time"

	"github.com/ropewalk/ropewalk/sandbox"
)

// entry is the session of one trajectory.
type entry struct {
	id       string
	packages string
	limits   sandbox.Limits
	life     context.Context // ends when the session is forgotten, or the pool closed; this ends its cell
	halt     context.CancelCauseFunc
	turn     chan struct{} // holds one item while a cell runs or the interpreter is being closed
	timer    *time.Timer   // always running while no cell has the turn

	// These belong to the goroutine that has the turn:
	session sandbox.Session // nil until the next cell opens it
	cells   []ranCell
	bytes   int   // size of all cells
	over    error // returned for every later cell
	before  int   // number of the trajectory's cells that earlier interpreters ran and that cells does not contain

	// For notebooks:
	ran   []mark // all cells of the trajectory that have run here or before this interpreter was opened
	fresh bool   // the interpreter has not run any cell

	used time.Time // end of the last cell; guarded by the pool's lock
}

// enter waits for the turn.
func (p *Pool) enter(ctx context.Context, k *entry) error {
	select {
	case k.turn <- struct{}{}:
		k.timer.Stop()
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// leave gives the turn back, and starts the timer after which the interpreter may be closed.
func (p *Pool) leave(k *entry) {
	p.mu.Lock()
	k.used = time.Now()
	gone := p.entries[k.id] != k
	p.mu.Unlock()
	wait := p.settings.Forget
	if k.session != nil {
		wait = p.settings.Idle
	}
	if !gone {
		k.timer.Reset(wait)
	}
	<-k.turn
	p.places.notify(p)
}

// idle closes an interpreter that has been idle for too long, or forgets a session that has none.
func (p *Pool) idle(k *entry) {
	select {
	case k.turn <- struct{}{}:
	default:
		// A cell has arrived, or a search for a free place holds the turn for a moment. The cell restarts the timer
		// when it leaves, but the search does not, so restart the timer here.
		k.timer.Reset(p.settings.Idle)
		return
	}
	if k.session == nil {
		p.forget(k)
	} else {
		p.evict(k)
	}
	p.leave(k)
}

// evict closes the interpreter and counts that. It needs the turn.
func (p *Pool) evict(k *entry) {
	p.drop(k)
	p.mu.Lock()
	p.counts.Evicted++
	p.mu.Unlock()
}

// forget removes the session from the pool. It needs the turn.
func (p *Pool) forget(k *entry) {
	p.drop(k)
	k.timer.Stop()
	k.halt(errDropped)
	k.over, k.cells = errDropped, nil
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.entries[k.id] == k {
		delete(p.entries, k.id)
	}
}

// drop closes the interpreter, if there is one, and frees its place. It needs the turn.
func (p *Pool) drop(k *entry) {
	if k.session == nil {
		return
	}
	_ = k.session.Close() // it may be the session that has just broken
	k.session = nil
	p.places.free(p)
}
