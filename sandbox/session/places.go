package session

import "context"

// places bounds the number of interpreters. All fields are guarded by the pool's lock.
type places struct {
	most, taken int
	freed       chan struct{} // closed and replaced when a place or a turn is given back
}

// take takes a place: a free one, or that of the interpreter that has been idle longest, or the first one to be freed.
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
			p.forget(victim)
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

// longestIdle returns the entry, among those with an interpreter, that has been idle longest. It takes the entry's
// turn. It needs the lock.
func (l *places) longestIdle(p *Pool) *entry {
	var oldest *entry
	for _, k := range p.entries {
		if oldest != nil && !k.used.Before(oldest.used) {
			continue
		}
		select {
		case k.turn <- struct{}{}:
		default:
			continue // a cell of it runs
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
	l.notify(p)
}

// notify wakes the goroutines that wait for a place.
func (l *places) notify(p *Pool) {
	p.mu.Lock()
	close(l.freed)
	l.freed = make(chan struct{})
	p.mu.Unlock()
}
