package admission

import (
	"errors"
	"fmt"
	"slices"
)

// Rank chooses which engine takes the head of the queue. On ties, the engine with the lowest number takes it.
type Rank string

// FreeSlots: the engine that could take the most rollouts of the head's size. FreeTokens: the one with
// the most tokens free.
const (
	FreeSlots  Rank = "free_slots"
	FreeTokens Rank = "free_tokens"
)

// Place is where the scheduler put a rollout.
type Place struct {
	Rollout int
	Engine  int
	Again   bool // it was parked, and its tokens are to be computed again
}

// Scheduler assigns rollouts to engines. It is a deterministic state machine for one goroutine: every event is
// a method; after each event, Admit says what to start. The caller numbers the rollouts.
type Scheduler struct {
	rank     Rank
	capacity []int
	reserved []int
	queue    []waiting   // never placed, in order of arrival
	back     [][]waiting // per engine: answered by their tools, in order of arrival
	placed   map[int]placed
}

type waiting struct{ rollout, size int }

type placed struct {
	engine, size int
	parked       bool // its room is freed
	returning    bool // and it waits for room again
}

// NewScheduler makes a scheduler. It refuses an engine that could not hold one rollout of the greatest length;
// with length 0 it refuses none.
func NewScheduler(rank Rank, capacity []int, length int) (*Scheduler, error) {
	if !slices.Contains([]Rank{"", FreeSlots, FreeTokens}, rank) {
		return nil, fmt.Errorf("new scheduler: rank must be %s or %s, got %q", FreeSlots, FreeTokens, rank)
	}
	if len(capacity) == 0 {
		return nil, errors.New("new scheduler: no engines")
	}
	for e, c := range capacity {
		if c < 0 || length > 0 && SafeRollouts(c, length) == 0 {
			return nil, fmt.Errorf(
				"new scheduler: engine %d holds %d tokens, too few for one rollout of %d", e, c, length,
			)
		}
	}
	return &Scheduler{
		rank: rank, capacity: slices.Clone(capacity), reserved: make([]int, len(capacity)),
		back: make([][]waiting, len(capacity)), placed: map[int]placed{},
	}, nil
}

// Enqueue puts a rollout at the end of the queue. One that fits no engine is refused, since it would
// block the queue for ever.
func (s *Scheduler) Enqueue(rollout, size int) error {
	if _, ok := s.placed[rollout]; ok || slices.ContainsFunc(
		s.queue, func(w waiting) bool { return w.rollout == rollout },
	) {
		return fmt.Errorf("enqueue rollout %d: it is already queued or placed", rollout)
	}
	if size < 1 || size > slices.Max(s.capacity) {
		return fmt.Errorf("enqueue rollout %d: a reservation of %d tokens fits no engine", rollout, size)
	}
	s.queue = append(s.queue, waiting{rollout, size})
	return nil
}

// Admit places the rollouts that fit: on each engine first those that come back from a tool, then the head of
// the queue for as long as some engine has room. The head is never overtaken. An engine for which a rollout
// waits to come back takes no new rollout.
func (s *Scheduler) Admit() []Place {
	var out []Place
	for e := range s.back {
		for len(s.back[e]) > 0 && s.back[e][0].size <= s.free(e) {
			w := s.back[e][0]
			s.back[e] = s.back[e][1:]
			out = append(out, s.place(w, e, true))
		}
	}
	for len(s.queue) > 0 {
		e, ok := s.choose(s.queue[0].size)
		if !ok {
			break
		}
		w := s.queue[0]
		s.queue = s.queue[1:]
		out = append(out, s.place(w, e, false))
	}
	return out
}

func (s *Scheduler) free(e int) int { return s.capacity[e] - s.reserved[e] }

func (s *Scheduler) place(w waiting, e int, again bool) Place {
	s.reserved[e] += w.size
	s.placed[w.rollout] = placed{engine: e, size: w.size}
	return Place{Rollout: w.rollout, Engine: e, Again: again}
}

// choose returns the engine that takes a rollout of a size.
func (s *Scheduler) choose(size int) (engine int, ok bool) {
	most := 0
	for e := range s.capacity {
		room := s.free(e)
		if len(s.back[e]) > 0 || room < size {
			continue
		}
		if s.rank != FreeTokens {
			room /= size
		}
		if room > most {
			engine, most, ok = e, room, true
		}
	}
	return engine, ok
}

// Finish takes a rollout out and frees its room.
func (s *Scheduler) Finish(rollout int) error {
	p, err := s.running(rollout)
	if err != nil {
		return fmt.Errorf("finish: %w", err)
	}
	if p.returning {
		s.back[p.engine] = slices.DeleteFunc(s.back[p.engine], func(w waiting) bool { return w.rollout == rollout })
	} else if !p.parked {
		s.reserved[p.engine] -= p.size
	}
	delete(s.placed, rollout)
	return nil
}

// Park frees the room of a rollout that waits for a tool.
func (s *Scheduler) Park(rollout int) error {
	p, err := s.running(rollout)
	if err != nil {
		return fmt.Errorf("park: %w", err)
	}
	if p.parked {
		return fmt.Errorf("park: rollout %d is parked already", rollout)
	}
	s.reserved[p.engine] -= p.size
	p.parked = true
	s.placed[rollout] = p
	return nil
}

// Return queues a parked rollout, whose tool has answered, for room on its engine.
func (s *Scheduler) Return(rollout int) error {
	p, err := s.running(rollout)
	if err != nil {
		return fmt.Errorf("return: %w", err)
	}
	if !p.parked || p.returning {
		return fmt.Errorf("return: rollout %d is not parked", rollout)
	}
	p.returning = true
	s.placed[rollout] = p
	s.back[p.engine] = append(s.back[p.engine], waiting{rollout, p.size})
	return nil
}

// Tighten lowers a rollout's reservation to the most tokens that it can still come to hold. A reservation can
// never be raised again.
func (s *Scheduler) Tighten(rollout, size int) error {
	p, err := s.running(rollout)
	if err != nil {
		return fmt.Errorf("tighten: %w", err)
	}
	if p.parked || size < 1 || size > p.size {
		return fmt.Errorf("tighten: rollout %d cannot go from %d to %d tokens", rollout, p.size, size)
	}
	s.reserved[p.engine] -= p.size - size
	p.size = size
	s.placed[rollout] = p
	return nil
}

func (s *Scheduler) running(rollout int) (placed, error) {
	p, ok := s.placed[rollout]
	if !ok {
		return placed{}, fmt.Errorf("rollout %d is on no engine", rollout)
	}
	return p, nil
}

// Reserved returns the tokens reserved on each engine.
func (s *Scheduler) Reserved() []int { return slices.Clone(s.reserved) }

// Waiting returns how many rollouts wait to be placed, and how many to come back from a tool.
func (s *Scheduler) Waiting() (first, again int) {
	for _, b := range s.back {
		again += len(b)
	}
	return len(s.queue), again
}
