package zygote

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A call begins in the *quick lane*, of as many places as there are workers. While others wait for one, a call has
// its *turn* there and no more: then it is *set aside*, which is to go on as it is in the *long lane*, of as many
// places again, where it stands still most of the time while the quick lane is full. Where that is full, it takes the place of the call there that has had most: one
// that is a little late is soon over, and an endless loop gives way. That call begins anew when its time comes; a
// call has no effect but its verdict, so nobody can tell. Each time it does, it may have ten times as much before
// it has to give way again. So endless loops take a turn each from the calls behind them, and a small share of the machine,
// instead of a worker for as long as their limits let them.
type lanes struct {
	quick   chan struct{} // a token for each place that is free; who came first is first
	waiting atomic.Int64  // calls at its door
	aside   atomic.Int64  // calls set aside so far

	mu    sync.Mutex
	free  int         // places of the long lane
	long  []*patience // the calls in the others
	queue []*late     // calls that wait to begin anew there
	usual time.Duration
}

// late is a call that waits for the long lane.
type late struct {
	call  *patience
	ready chan struct{} // closed when it has a place
}

const (
	// shortestTurn is a turn where calls are small. Of 10,000 calls of 4 ms on two workers, 100 endless loops take 3% by it.
	shortestTurn = 10 * time.Millisecond
	// usualTurn is a turn in calls as they usually are: where all are long turns become so too, and few give way.
	usualTurn   = 4
	longestTurn = 2 * time.Second
	// idleCost is how much waiting counts as much as computing: a call that sleeps keeps a place, but no processor.
	idleCost = 8
)

func newLanes(workers int) *lanes {
	l := &lanes{quick: make(chan struct{}, workers), free: workers, usual: shortestTurn / usualTurn}
	for range workers {
		l.quick <- struct{}{}
	}
	return l
}

// enter waits for a place in the quick lane.
func (l *lanes) enter(ctx context.Context) error {
	l.waiting.Add(1)
	defer l.waiting.Add(-1)
	select {
	case <-l.quick:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// leave gives back the quick lane's place.
func (l *lanes) leave() { l.quick <- struct{}{} }

// step takes a call that has left the quick lane into the long lane, at once, or reports that there is no place.
func (l *lanes) step(p *patience) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.free > 0 && len(l.queue) == 0 {
		l.free--
		l.long = append(l.long, p)
		return true
	}
	var most *patience
	for _, other := range l.long {
		if spent := other.spent.Load(); spent >= other.may() && spent > p.spent.Load() && (most == nil || spent > most.spent.Load()) {
			most = other
		}
	}
	if most == nil {
		return false
	}
	l.long[slices.Index(l.long, most)] = p
	most.giveWay()
	return true
}

// enterLong waits for a place in the long lane: first who has begun anew least often, then who came first.
func (l *lanes) enterLong(ctx context.Context, p *patience) error {
	l.mu.Lock()
	if l.free > 0 && len(l.queue) == 0 {
		l.free--
		l.long = append(l.long, p)
		l.mu.Unlock()
		return nil
	}
	at := len(l.queue)
	for at > 0 && l.queue[at-1].call.begun > p.begun {
		at--
	}
	w := &late{call: p, ready: make(chan struct{})}
	l.queue = slices.Insert(l.queue, at, w)
	l.mu.Unlock()
	select {
	case <-w.ready:
		return nil
	case <-ctx.Done():
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if at := slices.Index(l.queue, w); at >= 0 {
		l.queue = slices.Delete(l.queue, at, at+1)
	} else {
		l.vacate(p) // it got a place meanwhile
	}
	return context.Cause(ctx)
}

// leaveLong gives back the long lane's place, if the call has one still.
func (l *lanes) leaveLong(p *patience) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.vacate(p)
}

// vacate is called with mu held.
func (l *lanes) vacate(p *patience) {
	at := slices.Index(l.long, p)
	if at < 0 {
		return // another has it
	}
	l.long = slices.Delete(l.long, at, at+1)
	if len(l.queue) == 0 {
		l.free++
		return
	}
	next := l.queue[0]
	l.queue = l.queue[1:]
	l.long = append(l.long, next.call)
	close(next.ready)
}

// turn is how much a call may have of the quick lane while others wait.
func (l *lanes) turn() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.turnNow()
}

// turnNow is called with mu held.
func (l *lanes) turnNow() time.Duration {
	return min(max(shortestTurn, usualTurn*l.usual), longestTurn)
}

// took counts a call that has left the quick lane, by its end or set aside.
func (l *lanes) took(spent time.Duration) {
	const lately = 32 // calls
	l.mu.Lock()
	defer l.mu.Unlock()
	l.usual += (min(spent, l.turnNow()) - l.usual) / lately
}

// full reports whether no place of the quick lane is free.
func (l *lanes) full() bool { return len(l.quick) == 0 }

// busy is how many calls run.
func (l *lanes) busy() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return cap(l.quick) - len(l.quick) + len(l.long)
}
