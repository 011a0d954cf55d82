package zygote

import (
	"slices"
	"sync"
)

// slot is the room for one call at a time, with a zygote for each package set; they may be replaced.
type slot struct {
	index   int
	zygotes map[string]*process // by set; what is not there is started when a call needs it
}

// drop ends a zygote.
func (s *slot) drop(z *process) {
	z.stop()
	delete(s.zygotes, z.set)
}

// slots are those that no call is in. There is one for each place of both lanes; a call whose place another has taken
// is in its slot for a moment more.
type slots struct {
	mu    sync.Mutex
	given *sync.Cond
	free  []*slot // the one that was used last comes last
}

func newSlots(n int) *slots {
	s := &slots{}
	s.given = sync.NewCond(&s.mu)
	for i := range n {
		s.free = append(s.free, &slot{index: i, zygotes: map[string]*process{}})
	}
	return s
}

// take prefers a slot that has a zygote of the set, of these the one that was used last.
func (s *slots) take(set string) *slot {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.free) == 0 {
		s.given.Wait()
	}
	for i, candidate := range slices.Backward(s.free) {
		if candidate.zygotes[set] != nil {
			return s.remove(i)
		}
	}
	return s.remove(len(s.free) - 1)
}

// without takes a slot that has no zygote of the set; nil if each that is free has.
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
	s.given.Signal()
}

// all are the slots once nothing runs any more.
func (s *slots) all() []*slot { return s.free }
