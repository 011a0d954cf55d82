package mcp

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/tool"
)

// idleFor is how long a session may be without a call before it is closed.
const idleFor = 30 * time.Minute

// Pool holds a worker's sessions. It is safe for concurrent use. Its owner closes it when no call runs.
type Pool struct {
	mu      sync.Mutex
	places  map[string]*place   // by server and episode
	shared  map[string]*session // by server
	freed   chan struct{}       // closed, and made again, when a session may have become free
	closing sync.WaitGroup
	closed  bool
}

// NewPool makes a pool without sessions.
func NewPool() *Pool {
	return &Pool{places: map[string]*place{}, shared: map[string]*session{}, freed: make(chan struct{})}
}

// place is where the session of an episode is, or was.
type place struct {
	key, server string
	turn        chan struct{} // holds one item while a call runs or the session is being closed
	timer       *time.Timer
	used        time.Time // guarded by the pool's lock
	session     *session  // nil until a call opens it; belongs to the holder of the turn
}

// enter returns the place of an episode's session and takes its turn. leave gives the turn back.
func (p *Pool) enter(ctx context.Context, server Server, id, episode string) (*place, error) {
	for {
		at, victim, freed, err := p.find(server, id, episode)
		switch {
		case err != nil:
			return nil, err
		case victim != nil:
			p.drop(victim)
			p.yield(victim)
			continue
		case freed != nil:
			select {
			case <-freed:
				continue
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			}
		}
		select {
		case at.turn <- struct{}{}:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		p.mu.Lock()
		current := p.places[at.key] == at
		p.mu.Unlock()
		if !current { // closed in between
			p.yield(at)
			continue
		}
		at.timer.Stop()
		return at, nil
	}
}

// find returns the place of an episode, and makes it if there is room. If another session must make room first, find
// takes its turn, forgets it and returns it as victim. If a call runs in each of the others, it returns a channel that
// is closed when one may have become free.
func (p *Pool) find(server Server, id, episode string) (at, victim *place, freed <-chan struct{}, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, nil, nil, errClosing
	}
	key := id + " " + episode
	if at = p.places[key]; at != nil {
		return at, nil, nil, nil
	}
	held := 0
	for _, other := range p.places {
		if other.server == id {
			held++
			if len(other.turn) == 0 && (victim == nil || other.used.Before(victim.used)) {
				victim = other
			}
		}
	}
	if held >= server.Sessions {
		if !server.Restores() {
			return nil, nil, nil, fmt.Errorf("%w: open a session with MCP server %s: %w: there are %d; raise sessions",
				tool.ErrNotRun, server.Name, ErrNoRoom, held)
		}
		if victim == nil {
			return nil, nil, p.freed, nil
		}
		select {
		case victim.turn <- struct{}{}:
			delete(p.places, victim.key)
			return nil, victim, nil, nil
		default: // a call has just taken it
			return nil, nil, p.freed, nil
		}
	}
	at = &place{key: key, server: id, turn: make(chan struct{}, 1), used: time.Now()}
	at.timer = time.AfterFunc(idleFor, func() { p.expire(at) })
	p.places[key] = at
	return at, nil, nil, nil
}

// errClosing means that a call has come after Close.
var errClosing = fmt.Errorf("%w: the worker is closing its sessions", tool.ErrNotRun)

// noteFree wakes the calls that wait for a session. It needs the lock.
func (p *Pool) noteFree() {
	close(p.freed)
	p.freed = make(chan struct{})
}

// leave gives the turn back.
func (p *Pool) leave(at *place) {
	p.mu.Lock()
	at.used = time.Now()
	p.mu.Unlock()
	at.timer.Reset(idleFor)
	p.yield(at)
}

// yield gives the turn back and wakes those that wait for a session.
func (p *Pool) yield(at *place) {
	<-at.turn
	p.mu.Lock()
	defer p.mu.Unlock()
	p.noteFree()
}

// forget closes the session of a place when no call runs in it.
func (p *Pool) forget(at *place) {
	at.turn <- struct{}{}
	p.mu.Lock()
	if p.places[at.key] == at {
		delete(p.places, at.key)
	}
	p.mu.Unlock()
	p.drop(at)
	p.yield(at)
}

// expire forgets a place that has been idle for long. A call may have come when the timer had ended already.
func (p *Pool) expire(at *place) {
	p.mu.Lock()
	idle := time.Since(at.used) >= idleFor && len(at.turn) == 0
	p.mu.Unlock()
	if idle {
		p.forget(at)
	}
}

// drop closes the session of a place, if it has one. It needs the turn.
func (p *Pool) drop(at *place) {
	at.timer.Stop()
	if at.session != nil {
		at.session.close()
		at.session = nil
	}
}

// end closes the session of an episode in the background.
func (p *Pool) end(id, episode string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if at := p.places[id+" "+episode]; at != nil {
		p.closing.Go(func() { p.forget(at) })
	}
}

// borrow returns the session that all episodes share. giveBack ends its use; a session that broke gets no further
// calls, and is closed after its last.
func (p *Pool) borrow(ctx context.Context, server Server, id string) (*session, error) {
	p.mu.Lock()
	if s := p.shared[id]; s != nil {
		s.users++
		p.mu.Unlock()
		return s, nil
	}
	p.mu.Unlock()
	s, err := openFor(ctx, server)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if first := p.shared[id]; first != nil || p.closed {
		p.closing.Go(s.close)
		if first == nil {
			return nil, errClosing
		}
		first.users++
		return first, nil
	}
	s.users++
	p.shared[id] = s
	return s, nil
}

func (p *Pool) giveBack(id string, s *session, broke bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s.users--
	if broke && p.shared[id] == s {
		delete(p.shared, id)
	}
	if p.shared[id] != s && s.users == 0 {
		p.closing.Go(s.close)
	}
}

// Held is how many sessions of episodes the pool holds.
func (p *Pool) Held() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.places)
}

// Close closes all sessions and waits until their programs have ended.
func (p *Pool) Close() error {
	p.mu.Lock()
	p.closed = true
	for _, at := range p.places {
		p.closing.Go(func() { p.forget(at) })
	}
	for id, s := range p.shared {
		delete(p.shared, id)
		p.closing.Go(s.close)
	}
	p.mu.Unlock()
	p.closing.Wait()
	return nil
}
