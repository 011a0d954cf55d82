package mcp

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/internal/keyed"
	"github.com/ropewalk/ropewalk/tool"
)

// idleFor is how long a session may be without a call before it is closed.
const idleFor = 30 * time.Minute

// Pool holds a worker's sessions. It is safe for concurrent use. Its owner closes it when no call runs.
type Pool struct {
	mu      sync.Mutex
	own     map[string]*sessions // for episodes, by server
	shared  map[string]*session  // by server
	closing sync.WaitGroup
	closed  bool
}

// sessions holds a server's sessions by episodes. A seat's session is nil until a call opens it.
type sessions = keyed.Pool[*session]

// NewPool makes a pool without sessions.
func NewPool() *Pool {
	return &Pool{own: map[string]*sessions{}, shared: map[string]*session{}}
}

// errClosing means that a call has come after Close.
var errClosing = fmt.Errorf("%w: the worker is closing its sessions", tool.ErrNotRun)

// episodes returns the sessions that a server has for episodes.
func (p *Pool) episodes(server Server, id string) (*sessions, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, errClosing
	}
	own := p.own[id]
	if own == nil {
		own = &sessions{Most: server.Sessions, Idle: idleFor, End: endSession, Closed: errClosing}
		if !server.Restores() {
			own.Full = fmt.Errorf("%w: open a session with MCP server %s: %w: there are %d; raise sessions",
				tool.ErrNotRun, server.Name, ErrNoRoom, server.Sessions)
		}
		p.own[id] = own
	}
	return own, nil
}

// endSession closes the session of a seat, if there is one.
func endSession(s **session) {
	if *s != nil {
		(*s).close()
		*s = nil
	}
}

// end closes the session of an episode in the background.
func (p *Pool) end(id, episode string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if own := p.own[id]; own != nil && !p.closed {
		p.closing.Go(func() { _ = own.Forget(context.Background(), episode) })
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
func (p *Pool) Held() (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, own := range p.own {
		n += own.Len()
	}
	return n
}

// Close closes all sessions and waits until their programs have ended.
func (p *Pool) Close() error {
	p.mu.Lock()
	p.closed = true
	for _, own := range p.own {
		p.closing.Go(own.Close)
	}
	for id, s := range p.shared {
		delete(p.shared, id)
		p.closing.Go(s.close)
	}
	p.mu.Unlock()
	p.closing.Wait()
	return nil
}
