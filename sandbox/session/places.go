package session

import "context"

// places bounds how many interpreters there are. All fields are under the pool's lock.
type places struct {
	most, taken int
	freed       chan struct{} // closed, and made anew, when a place or a turn was given back
}

// take takes a place: a free one, or that of the interpreter that was idle for longest, or the first that comes free.
func (l *places) take(ctx context.Context, p *Pool) error {
	for {
		p.mu.Lock()
		if l.taken < l.most {
			l.taken++
			p.mu.Unlock()
			return nil
		}
		freed := l.freed
		victim := l.longestIdle(p)
		p.mu.Unlock()
		if victim != nil {
			if victim.session != nil {
				p.evict(victim)
			}
			p.leave(victim)
			continue
		}
		select {
		case <-freed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// longestIdle returns, with its turn taken, the session with an interpreter whose last cell is longest ago. It needs the lock.
func (l *places) longestIdle(p *Pool) *kept {
	var oldest *kept
	for _, k := range p.kept {
		if oldest != nil && !k.used.Before(oldest.used) {
			continue
		}
		select {
		case k.turn <- struct{}{}:
		default:
			continue // its cell runs
		}
		if k.session == nil {
			<-k.turn
			continue
		}
		if oldest != nil {
			<-oldest.turn
		}
		oldest = k
	}
	if oldest != nil {
		oldest.timer.Stop()
	}
	return oldest
}

// free gives a place back.
func (l *places) free(p *Pool) {
	p.mu.Lock()
	l.taken--
	p.mu.Unlock()
	l.tell(p)
}

// tell wakes who waits for a place.
func (l *places) tell(p *Pool) {
	p.mu.Lock()
	close(l.freed)
	l.freed = make(chan struct{})
	p.mu.Unlock()
}
