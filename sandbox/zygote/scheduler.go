package zygote

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// scheduler decides which calls run. A call begins in the *foreground*, which has one place for each worker. While
// other calls wait for a place, a call may use one *time slice* there. After that it is *set aside*: it moves, as it
// is, to the *background*, which has one place for each worker too. Calls there are paused most of the time while the
// foreground is full.
//
// If the background is full, the new call takes the place of the call there that has used the most time. So a call that
// is only a little late finishes soon, and an endless loop loses its place. The call that loses its place is killed and
// starts again from the beginning when it next gets a place. Calls have no effect except their verdict, so a restart
// cannot be noticed. With each restart a call may use ten times as much before it can lose its place again.
//
// As a result, an endless loop costs the calls behind it one time slice and a small share of the machine, instead of a
// whole worker until its limits end it.
type scheduler struct {
	foreground chan struct{} // one token for each free foreground place; first come, first served
	waiting    atomic.Int64  // calls that wait for a foreground place
	aside      atomic.Int64  // calls set aside so far

	mu         sync.Mutex
	free       int       // free background places
	background []*task   // the calls in the other background places
	queue      []*waiter // calls that wait to start again in the background
	typical    time.Duration
}

// waiter is a call that waits for a background place.
type waiter struct {
	call  *task
	ready chan struct{} // closed when the call has a place
}

const (
	// shortestSlice is the time slice where calls are small. With 10,000 calls of 4 ms on two workers, it limits the
	// cost of 100 endless loops to 3%.
	shortestSlice = 10 * time.Millisecond
	// sliceFactor is the length of a time slice in typical calls. Where all calls are long, time slices become long
	// too, and few calls are set aside.
	sliceFactor  = 4
	longestSlice = 2 * time.Second
	// idleCost is the ratio by which waiting is cheaper than computing: a call that sleeps uses a place, but no
	// processor.
	idleCost = 8
)

func newScheduler(workers int) *scheduler {
	s := &scheduler{foreground: make(chan struct{}, workers), free: workers, typical: shortestSlice / sliceFactor}
	for range workers {
		s.foreground <- struct{}{}
	}
	return s
}

// enter waits for a foreground place.
func (s *scheduler) enter(ctx context.Context) error {
	s.waiting.Add(1)
	defer s.waiting.Add(-1)
	select {
	case <-s.foreground:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// leave returns the foreground place.
func (s *scheduler) leave() { s.foreground <- struct{}{} }

// setAside moves a call from the foreground to the background at once, or reports that there is no place for it.
func (s *scheduler) setAside(p *task) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.free > 0 && len(s.queue) == 0 {
		s.free--
		s.background = append(s.background, p)
		return true
	}
	var most *task
	for _, other := range s.background {
		if used := other.used.Load(); used >= other.allowance() && used > p.used.Load() &&
			(most == nil || used > most.used.Load()) {
			most = other
		}
	}
	if most == nil {
		return false
	}
	s.background[slices.Index(s.background, most)] = p
	most.evict()
	return true
}

// enterBackground waits for a background place: calls with fewer restarts first, then first come, first served.
func (s *scheduler) enterBackground(ctx context.Context, p *task) error {
	s.mu.Lock()
	if s.free > 0 && len(s.queue) == 0 {
		s.free--
		s.background = append(s.background, p)
		s.mu.Unlock()
		return nil
	}
	at := len(s.queue)
	for at > 0 && s.queue[at-1].call.restarts > p.restarts {
		at--
	}
	w := &waiter{call: p, ready: make(chan struct{})}
	s.queue = slices.Insert(s.queue, at, w)
	s.mu.Unlock()
	select {
	case <-w.ready:
		return nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if at := slices.Index(s.queue, w); at >= 0 {
		s.queue = slices.Delete(s.queue, at, at+1)
	} else {
		s.vacate(p) // it got a place in the meantime
	}
	return context.Cause(ctx)
}

// leaveBackground returns the background place, if the call still has one.
func (s *scheduler) leaveBackground(p *task) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.vacate(p)
}

// vacate needs mu.
func (s *scheduler) vacate(p *task) {
	at := slices.Index(s.background, p)
	if at < 0 {
		return // another call has taken the place
	}
	s.background = slices.Delete(s.background, at, at+1)
	if len(s.queue) == 0 {
		s.free++
		return
	}
	next := s.queue[0]
	s.queue = s.queue[1:]
	s.background = append(s.background, next.call)
	close(next.ready)
}

// slice is how much time a call may use in the foreground while others wait.
func (s *scheduler) slice() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sliceNow()
}

// sliceNow needs mu.
func (s *scheduler) sliceNow() time.Duration {
	return min(max(shortestSlice, sliceFactor*s.typical), longestSlice)
}

// record counts the time of a call that has left the foreground, because it ended or was set aside.
func (s *scheduler) record(used time.Duration) {
	const lately = 32 // calls
	s.mu.Lock()
	defer s.mu.Unlock()
	s.typical += (min(used, s.sliceNow()) - s.typical) / lately
}

// full reports whether every foreground place is taken.
func (s *scheduler) full() bool { return len(s.foreground) == 0 }

// busy returns how many calls have a place.
func (s *scheduler) busy() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return cap(s.foreground) - len(s.foreground) + len(s.background)
}
