package zygote

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A call begins in the *quick lane*, which has a place for each worker. While others wait for one, a call has its
// *turn* there and no more: then it is *set aside*, to the *long lane*, which has as many places again, at low
// priority. Where the long lane is full, the call is ended and begins anew when its turn there comes; a call has no
// effect but its verdict, so nobody can tell. So endless loops take a turn each from the calls behind them, and a
// small share of the machine, instead of a worker for as long as their limits let them.
type lanes struct {
	quick, long chan struct{} // a token for each place that is free
	waiting     atomic.Int64  // calls at the quick lane's door
	aside       atomic.Int64  // calls set aside so far

	mu    sync.Mutex
	usual time.Duration // how long calls lately took in the quick lane, each at most a turn
}

const (
	// shortestTurn is a turn where calls are small. Of 10,000 calls of 4 ms on two workers, 100 endless loops take 5% by it.
	shortestTurn = 20 * time.Millisecond
	// usualTurn is a turn in calls as they usually are: where all are long turns become so too, and few begin twice.
	usualTurn   = 4
	longestTurn = 2 * time.Second
	// lowPriority is a nice value: against a call of the quick lane one of the long lane gets a fifteenth.
	lowPriority = 12
)

func newLanes(workers int) *lanes {
	l := &lanes{quick: make(chan struct{}, workers), long: make(chan struct{}, workers), usual: shortestTurn / usualTurn}
	for range workers {
		l.quick <- struct{}{}
		l.long <- struct{}{}
	}
	return l
}

// place is where a call runs. It belongs to one goroutine.
type place struct {
	lanes *lanes
	lane  chan struct{} // nil once it was left
}

// enter waits for a place in the quick lane; who came first is first.
func (l *lanes) enter(ctx context.Context) (*place, error) {
	l.waiting.Add(1)
	defer l.waiting.Add(-1)
	return l.take(ctx, l.quick)
}

// enterLong waits for a place in the long lane.
func (l *lanes) enterLong(ctx context.Context) (*place, error) { return l.take(ctx, l.long) }

func (l *lanes) take(ctx context.Context, lane chan struct{}) (*place, error) {
	select {
	case <-lane:
		return &place{lanes: l, lane: lane}, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (p *place) leave() {
	if p.lane != nil {
		p.lane <- struct{}{}
		p.lane = nil
	}
}

// step changes to the long lane, if it has a place at once.
func (p *place) step() bool {
	select {
	case <-p.lanes.long:
		p.leave()
		p.lane = p.lanes.long
		return true
	default:
		return false
	}
}

// turn is how long a call may be in the quick lane while others wait.
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
func (l *lanes) took(d time.Duration) {
	const lately = 32 // calls
	l.mu.Lock()
	defer l.mu.Unlock()
	l.usual += (min(d, l.turnNow()) - l.usual) / lately
}

// busy is how many calls run.
func (l *lanes) busy() int { return cap(l.quick) - len(l.quick) + cap(l.long) - len(l.long) }

// slots are those that no call is in. There is one for each place of both lanes, so whoever has a place finds one.
type slots struct {
	mu   sync.Mutex
	free []*slot // the one that was used last comes last
}

func newSlots(n int) *slots {
	s := &slots{}
	for i := range n {
		s.free = append(s.free, newSlot(n-1-i))
	}
	return s
}

// take prefers a slot that has a zygote of the set, of these the one that was used last.
func (s *slots) take(set string) *slot {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := len(s.free) - 1
	for i, candidate := range slices.Backward(s.free) {
		if candidate.zygotes[set] != nil {
			at = i
			break
		}
	}
	return s.remove(at)
}

// without takes a slot that has no zygote of the set; nil if each has.
func (s *slots) without(set string) *slot {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, candidate := range slices.Backward(s.free) {
		if candidate.zygotes[set] == nil {
			return s.remove(i)
		}
	}
	return nil
}

// remove is called with mu held.
func (s *slots) remove(at int) *slot {
	taken := s.free[at]
	s.free = slices.Delete(s.free, at, at+1)
	return taken
}

func (s *slots) give(back *slot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free = append(s.free, back)
}

// all are the slots once nothing runs any more.
func (s *slots) all() []*slot { return s.free }
