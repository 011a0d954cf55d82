package zygote

import (
	"slices"
	"sync"
)

// slot has room for one call at a time. It has a zygote for each package set in use; zygotes can be replaced.
type slot struct {
	index   int
	zygotes map[string]*process // by set; a missing zygote is started when a call needs it
}

// drop ends a zygote and removes it from the slot.
func (s *slot) drop(z *process) {
	z.stop()
	delete(s.zygotes, z.set)
}

// slots are the slots without a call. There is one slot for each place in the foreground and in the background. A call
// that has lost its place stays in its slot for a moment longer.
type slots struct {
	mu    sync.Mutex
	given *sync.Cond
	free  []*slot // the most recently used slot is the last
}

func newSlots(n int) *slots {
	s := &slots{}
	s.given = sync.NewCond(&s.mu)
	for i := range n {
		s.free = append(s.free, &slot{index: i, zygotes: map[string]*process{}})
	}
	return s
}

// take returns a slot, preferably one that has a zygote of the set, and among these the most recently used.
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

// without returns a slot that has no zygote of the set; nil if every free slot has one.
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

// remove needs mu.
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

// all returns every slot, once no call runs any more.
func (s *slots) all() []*slot { return s.free }
