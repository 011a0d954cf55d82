package admission

import (
	"cmp"
	"container/heap"
	"fmt"
	"math"
)

// Settings are those of the scheduler and of its simulation.
type Settings struct {
	Rank Rank // FreeSlots when empty
	// ReleaseOnTool parks a rollout whose tool call lasts longer than Park seconds.
	ReleaseOnTool bool
	Park          float64
	// Recompute is how many tokens a second an engine computes again for a rollout that comes back;
	// 0 takes no time.
	Recompute float64
	// SkipSmall uses an engine that is too small for the longest rollout for shorter ones, or leaves it idle,
	// instead of refusing it.
	SkipSmall bool
}

// Validate reports the first bad field.
func (s Settings) Validate() error {
	if !duration(s.Park) {
		return fmt.Errorf("admission.park must be finite and ≥ 0, got %g", s.Park)
	}
	if !(s.Recompute >= 0) || math.IsInf(s.Recompute, 0) {
		return fmt.Errorf("admission.recompute must be finite and ≥ 0, got %g", s.Recompute)
	}
	return nil
}

// Simulate runs the scheduler over rollouts that all arrive at time 0, in order. It returns every placement in
// order of time. All events of one moment are handled before anything is placed.
func Simulate(settings Settings, capacity []int, rollouts []Rollout) ([]Placement, Metrics, error) {
	s, err := newSimulation(settings, capacity, rollouts)
	if err != nil {
		return nil, Metrics{}, fmt.Errorf("simulate: %w", err)
	}
	if err := s.run(); err != nil {
		return nil, Metrics{}, fmt.Errorf("simulate: %w", err)
	}
	s.metrics.Makespan = s.now
	s.metrics.finish(s.used, capacity, s.waits)
	return s.trace, s.metrics, nil
}

// simulation is one run of the clock.
type simulation struct {
	Settings
	scheduler  *Scheduler
	rollouts   []Rollout
	at         []progress
	events     events
	now        float64
	generating []int // per engine: rollouts that generate
	used       []usage
	waits      []float64
	trace      []Placement
	metrics    Metrics
}

// progress is how far a rollout has come.
type progress struct {
	engine, segment, held int
	parked                bool
}

func newSimulation(settings Settings, capacity []int, rollouts []Rollout) (*simulation, error) {
	if err := settings.Validate(); err != nil {
		return nil, err
	}
	longest := 0
	for i, r := range rollouts {
		if err := r.validate(i); err != nil {
			return nil, err
		}
		longest = max(longest, r.Reservation)
	}
	if settings.SkipSmall {
		longest = 0
	}
	scheduler, err := NewScheduler(settings.Rank, capacity, longest)
	if err != nil {
		return nil, err
	}
	s := &simulation{
		Settings: settings, scheduler: scheduler, rollouts: rollouts, at: make([]progress, len(rollouts)),
		generating: make([]int, len(capacity)), used: make([]usage, len(capacity)),
		waits: make([]float64, len(rollouts)),
	}
	for i, r := range rollouts {
		s.at[i].held = r.Prompt
		if err := scheduler.Enqueue(i, r.Reservation); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (s *simulation) run() error {
	s.admit()
	for len(s.events) > 0 {
		s.pass(s.events[0].time)
		for len(s.events) > 0 && s.events[0].time == s.now {
			if err := s.handle(heap.Pop(&s.events).(event)); err != nil {
				return err
			}
		}
		s.admit()
	}
	return nil
}

// pass advances the clock.
func (s *simulation) pass(to float64) {
	for e := range s.used {
		s.used[e].add(to-s.now, s.generating[e] > 0, float64(s.scheduler.reserved[e]))
	}
	s.now = to
}

// admit starts what the scheduler places.
func (s *simulation) admit() {
	for _, p := range s.scheduler.Admit() {
		at := &s.at[p.Rollout]
		at.engine, at.parked = p.Engine, false
		s.trace = append(s.trace, Placement{Time: s.now, Rollout: p.Rollout, Engine: p.Engine, Again: p.Again})
		delay := 0.0
		if p.Again {
			s.metrics.Recomputed += at.held
			if s.Recompute > 0 {
				delay = float64(at.held) / s.Recompute
			}
		} else {
			s.waits[p.Rollout] = s.now
		}
		s.generate(p.Rollout, delay)
	}
}

// generate begins a rollout's segment; a rollout without segments ends where it begins.
func (s *simulation) generate(i int, delay float64) {
	seconds := delay
	if k := s.at[i].segment; k < len(s.rollouts[i].Segments) {
		seconds += s.rollouts[i].Segments[k].Seconds
	}
	s.generating[s.at[i].engine]++
	s.plan(seconds, generated, i)
}

func (s *simulation) plan(in float64, what happening, rollout int) {
	heap.Push(&s.events, event{time: s.now + in, what: what, rollout: rollout})
}

// handle applies an event.
func (s *simulation) handle(e event) error {
	at := &s.at[e.rollout]
	switch e.what {
	case generated:
		s.generating[at.engine]--
		if at.segment >= len(s.rollouts[e.rollout].Segments) {
			return s.scheduler.Finish(e.rollout)
		}
		segment := s.rollouts[e.rollout].Segments[at.segment]
		at.held += segment.Tokens
		if segment.Tool > 0 {
			s.plan(segment.Tool, answered, e.rollout)
			if s.ReleaseOnTool && s.Park < segment.Tool {
				s.plan(s.Park, parkedNow, e.rollout)
			}
			return nil
		}
		return s.next(e.rollout)
	case parkedNow:
		at.parked = true
		s.metrics.Parked++
		return s.scheduler.Park(e.rollout)
	}
	return s.next(e.rollout) // answered
}

// next continues after a segment and its tool with the next segment, or finishes the rollout.
func (s *simulation) next(i int) error {
	at := &s.at[i]
	at.segment++
	switch {
	case at.segment >= len(s.rollouts[i].Segments):
		return s.scheduler.Finish(i)
	case at.parked:
		return s.scheduler.Return(i)
	}
	s.generate(i, 0)
	return nil
}

// happening is a kind of event.
type happening int

const (
	generated happening = iota // a segment ended
	parkedNow                  // a tool call has lasted long enough to free the room
	answered                   // a tool call ended
)

type event struct {
	time    float64
	what    happening
	rollout int
}

// events is a heap by time; at one time by kind, then by rollout.
type events []event

func (e events) Len() int      { return len(e) }
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e events) Less(i, j int) bool {
	a, b := e[i], e[j]
	return cmp.Or(cmp.Compare(a.time, b.time), cmp.Compare(a.what, b.what), cmp.Compare(a.rollout, b.rollout)) < 0
}
func (e *events) Push(x any) { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}
