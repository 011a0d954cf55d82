package remote

import (
	"sync"
	"time"
)

// pool keeps live sessions by the state that they are at. It closes the one that was unused for longest when there are
// too many, and all that no one has used for a while.
type pool struct {
	most int
	idle time.Duration

	mu    sync.Mutex
	at    map[string][]*parked
	count int
}

// parked is a session that waits for its next action.
type parked struct {
	session Session
	state   string
	since   time.Time
	timer   *time.Timer
}

func newPool(most int, idle time.Duration) *pool {
	return &pool{most: most, idle: idle, at: map[string][]*parked{}}
}

// take removes a session at a state from the pool; nil if there is none.
func (p *pool) take(state string) Session {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := p.at[state]
	if len(list) == 0 {
		return nil
	}
	return p.remove(list[len(list)-1])
}

// put keeps a session that is at a state.
func (p *pool) put(state string, s Session) {
	var over Session
	p.mu.Lock()
	if p.count >= p.most {
		over = p.remove(p.oldest())
	}
	k := &parked{session: s, state: state, since: time.Now()}
	k.timer = time.AfterFunc(p.idle, func() { p.expire(k) })
	p.at[state] = append(p.at[state], k)
	p.count++
	p.mu.Unlock()
	if over != nil {
		over.Close()
	}
}

// expire closes a session that is still in the pool.
func (p *pool) expire(k *parked) {
	p.mu.Lock()
	s := p.remove(k)
	p.mu.Unlock()
	if s != nil {
		s.Close()
	}
}

// remove takes a session out of the pool; nil if it is not there. The caller holds mu.
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
		p.count--
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

// closeAll closes every session of the pool.
func (p *pool) closeAll() {
	for {
		p.mu.Lock()
		s := p.remove(p.oldest())
		p.mu.Unlock()
		if s == nil {
			return
		}
		s.Close()
	}
}
