package remote

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// pool counts the sessions that are alive and keeps those that wait for their next action, by the state that they are
// at. When there are too many, it closes the one that was unused for longest, and it closes all that no one has used
// for a while.
type pool struct {
	most int
	idle time.Duration

	mu      sync.Mutex
	at      map[string][]*parked
	alive   int           // sessions, in use and parked
	changed chan struct{} // closed when a session is parked or has ended
}

// parked is a session that waits for its next action.
type parked struct {
	session Session
	state   string
	since   time.Time
	timer   *time.Timer
}

func newPool(most int, idle time.Duration) *pool {
	return &pool{most: most, idle: idle, at: map[string][]*parked{}, changed: make(chan struct{})}
}

// enter makes room for one more session. If all are in use, it waits.
func (p *pool) enter(ctx context.Context) error {
	for {
		p.mu.Lock()
		if p.alive < p.most {
			p.alive++
			p.mu.Unlock()
			return nil
		}
		over, changed := p.remove(p.oldest()), p.changed
		p.mu.Unlock()
		if over != nil {
			over.Close() // its place is taken over
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("wait for one of %d sessions: %w", p.most, ctx.Err())
		}
	}
}

// leave ends a session that is in use, or gives back the room of one that was never opened (nil).
func (p *pool) leave(s Session) {
	if s != nil {
		s.Close()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.alive--
	p.wake()
}

// wake wakes those that wait for room. The caller holds mu.
func (p *pool) wake() {
	close(p.changed)
	p.changed = make(chan struct{})
}

// take removes a session at a state from those that are parked; nil if there is none.
func (p *pool) take(state string) Session {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := p.at[state]
	if len(list) == 0 {
		return nil
	}
	return p.remove(list[len(list)-1])
}

// put parks a session that is at a state.
func (p *pool) put(state string, s Session) {
	p.mu.Lock()
	defer p.mu.Unlock()
	k := &parked{session: s, state: state, since: time.Now()}
	k.timer = time.AfterFunc(p.idle, func() { p.expire(k) })
	p.at[state] = append(p.at[state], k)
	p.wake()
}

// expire ends a session that is still parked.
func (p *pool) expire(k *parked) {
	p.mu.Lock()
	s := p.remove(k)
	p.mu.Unlock()
	if s != nil {
		p.leave(s)
	}
}

// remove takes a session out of those that are parked; nil if it is not there. The caller holds mu.
func (p *pool) remove(k *parked) Session {
	if k == nil {
		return nil
	}
	list := p.at[k.state]
	for i := range list {
		if list[i] != k {
			continue
		}
		k.timer.Stop()
		if list = append(list[:i:i], list[i+1:]...); len(list) == 0 {
			delete(p.at, k.state)
		} else {
			p.at[k.state] = list
		}
		return k.session
	}
	return nil
}

func (p *pool) oldest() (first *parked) {
	for _, list := range p.at {
		for _, k := range list {
			if first == nil || k.since.Before(first.since) {
				first = k
			}
		}
	}
	return first
}

// closeAll ends every parked session.
func (p *pool) closeAll() {
	for {
		p.mu.Lock()
		s := p.remove(p.oldest())
		p.mu.Unlock()
		if s == nil {
			return
		}
		p.leave(s)
	}
}
