package session

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/sandbox"
)

// Settings bound a pool. A setting of zero means its default.
type Settings struct {
	Most int           // interpreters at once; default 64
	Idle time.Duration // idle time after which an interpreter is closed; default 10 minutes
}

func (s Settings) orDefault() Settings {
	if s.Most <= 0 {
		s.Most = 64
	}
	if s.Idle <= 0 {
		s.Idle = 10 * time.Minute
	}
	return s
}

var (
	errDropped    = fmt.Errorf("%w: it was ended", sandbox.ErrSessionLost)
	errPoolClosed = fmt.Errorf("%w: the pool of sessions is closed", sandbox.ErrInfrastructure)
)

// Pool holds interpreters by the ids of their trajectories. Safe for concurrent use.
type Pool struct {
	sessions sandbox.Sessions
	settings Settings
	life     context.Context
	halt     context.CancelCauseFunc

	mu      sync.Mutex
	entries map[string]*entry
	places  places
}

// entry is what the pool has of one trajectory.
type entry struct {
	id    string
	life  context.Context // ends when the entry is forgotten, or the pool closed; this ends its cell
	halt  context.CancelCauseFunc
	turn  chan struct{} // holds one item while a cell runs or the interpreter is being closed
	timer *time.Timer   // always running while no cell has the turn

	// These belong to the goroutine that has the turn:
	limits  sandbox.Limits
	session sandbox.Session // nil until the next cell opens it
	ran     []mark          // all cells of the trajectory that have run, here or before this interpreter was opened
	fresh   bool            // the interpreter has not run any cell

	used time.Time // end of the last cell; guarded by the pool's lock
}

// New returns a pool over sessions, which it does not close.
func New(sessions sandbox.Sessions, settings Settings) *Pool {
	life, halt := context.WithCancelCause(context.Background())
	p := &Pool{sessions: sessions, settings: settings.orDefault(), life: life, halt: halt, entries: map[string]*entry{}}
	p.places = places{most: p.settings.Most, freed: make(chan struct{})}
	return p
}

// find returns the entry of a trajectory, which it makes if there is none.
func (p *Pool) find(id string) (*entry, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.life.Err() != nil {
		return nil, errPoolClosed
	}
	k := p.entries[id]
	if k == nil {
		k = &entry{id: id, turn: make(chan struct{}, 1), fresh: true}
		k.life, k.halt = context.WithCancelCause(p.life)
		k.timer = time.AfterFunc(p.settings.Idle, func() { p.idle(k) })
		p.entries[id] = k
	}
	return k, nil
}

// current reports whether an entry has not been forgotten.
func (p *Pool) current(k *entry) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.entries[k.id] == k
}

// enter returns the entry of a trajectory and takes its turn.
func (p *Pool) enter(ctx context.Context, id string) (*entry, error) {
	for {
		k, err := p.find(id)
		if err != nil {
			return nil, err
		}
		select {
		case k.turn <- struct{}{}:
			k.timer.Stop()
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		if p.current(k) {
			return k, nil
		}
		<-k.turn // it was forgotten in the meantime
	}
}

// leave gives the turn back, and starts the timer after which the entry is forgotten.
func (p *Pool) leave(k *entry) {
	p.mu.Lock()
	k.used = time.Now()
	p.mu.Unlock()
	if p.current(k) {
		k.timer.Reset(p.settings.Idle)
	}
	<-k.turn
	p.places.notify(p)
}

// idle forgets an entry that has been idle for too long.
func (p *Pool) idle(k *entry) {
	select {
	case k.turn <- struct{}{}:
		p.forget(k)
		p.leave(k)
	default:
		// A cell has arrived, or a search for a free place holds the turn for a moment. The cell restarts the timer
		// when it leaves, but the search does not, so restart the timer here.
		k.timer.Reset(p.settings.Idle)
	}
}

// forget closes the interpreter and removes the entry from the pool. It needs the turn.
func (p *Pool) forget(k *entry) {
	p.drop(k)
	k.timer.Stop()
	k.halt(errDropped)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.entries[k.id] == k {
		delete(p.entries, k.id)
	}
}

// drop closes the interpreter, if there is one, and frees its place. It needs the turn.
func (p *Pool) drop(k *entry) {
	k.fresh = true
	if k.session == nil {
		return
	}
	_ = k.session.Close() // it may be the session that has just broken
	k.session = nil
	p.places.free(p)
}

// Live returns how many interpreters there are.
func (p *Pool) Live() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.places.taken
}

// End waits for the running cell, then ends the interpreter of a trajectory that runs no further cells.
func (p *Pool) End(ctx context.Context, id string) error {
	k, err := p.enter(ctx, id)
	if err != nil {
		return err
	}
	defer p.leave(k)
	p.forget(k)
	return nil
}

// Close ends running cells and every interpreter. A second call does nothing.
func (p *Pool) Close() error {
	p.mu.Lock()
	p.halt(errPoolClosed)
	var all []*entry
	for _, k := range p.entries {
		all = append(all, k)
	}
	p.mu.Unlock()
	for _, k := range all {
		k.turn <- struct{}{}
		p.forget(k)
		<-k.turn
	}
	return nil
}
