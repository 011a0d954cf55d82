package session

import (
	"context"
	"time"

	"github.com/ropewalk/ropewalk/sandbox"
)

// kept is one trajectory's session.
type kept struct {
	id       string
	packages string
	limits   sandbox.Limits
	life     context.Context // ends with Drop, and with the pool's: the cell that runs is ended
	halt     context.CancelCauseFunc
	turn     chan struct{} // holds one while a cell runs or the interpreter is taken away
	timer    *time.Timer   // set while nobody has the turn

	// Whoever has the turn:
	session sandbox.Session // nil: to be made
	cells   []told
	bytes   int   // of cells
	over    error // what every later cell gets
	before  int   // cells of the trajectory that earlier interpreters ran, and cells does not hold

	// Of a notebook:
	ran   []mark // all cells of the trajectory that have run here, or before its interpreter was made
	fresh bool   // the interpreter has run none

	used time.Time // end of the last cell; under the pool's lock
}

// enter takes the turn.
func (p *Pool) enter(ctx context.Context, k *kept) error {
	select {
	case k.turn <- struct{}{}:
		k.timer.Stop()
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// leave gives the turn back, and lets the interpreter be taken away after a while.
func (p *Pool) leave(k *kept) {
	p.mu.Lock()
	k.used = time.Now()
	gone := p.kept[k.id] != k
	p.mu.Unlock()
	wait := p.settings.Forget
	if k.session != nil {
		wait = p.settings.Idle
	}
	if !gone {
		k.timer.Reset(wait)
	}
	<-k.turn
	p.places.tell(p)
}

// idle takes an interpreter away that has been idle for long, or forgets a session that has none.
func (p *Pool) idle(k *kept) {
	select {
	case k.turn <- struct{}{}:
	default:
		return // a cell has come; the timer is set again after it
	}
	if k.session == nil {
		p.forget(k)
	} else {
		p.evict(k)
	}
	p.leave(k)
}

// evict needs the turn.
func (p *Pool) evict(k *kept) {
	p.drop(k)
	p.mu.Lock()
	p.counts.Evicted++
	p.mu.Unlock()
}

// forget needs the turn.
func (p *Pool) forget(k *kept) {
	p.drop(k)
	k.timer.Stop()
	k.halt(errDropped)
	k.over, k.cells = errDropped, nil
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.kept[k.id] == k {
		delete(p.kept, k.id)
	}
}

// drop closes the interpreter, if there is one, and frees its place. It needs the turn.
func (p *Pool) drop(k *kept) {
	if k.session == nil {
		return
	}
	_ = k.session.Close() // it may be what has just broken
	k.session = nil
	p.places.free(p)
}
