package admission

import (
	"fmt"
	"math"
	"slices"
)

// SimulateStatic runs the baseline: every engine gets an equal share of consecutive rollouts and starts them
// all at once. When their tokens exceed the engine's capacity, half of its running rollouts, those that came
// last, are evicted. They start again from the prompt, all at once, after the engine has finished the others.
//
// Source: the static allocation that rStar2-Agent compares with. Departure: the paper does not say what an
// engine does with evicted rollouts; here they lose all their tokens. Tokens grow evenly while a segment is
// generated.
func SimulateStatic(capacity []int, rollouts []Rollout) ([]Placement, Metrics, error) {
	if len(capacity) == 0 {
		return nil, Metrics{}, fmt.Errorf("simulate static: no engines")
	}
	engines, waits := make([]static, len(capacity)), make([]float64, len(rollouts))
	for i, r := range rollouts {
		if err := r.validate(i); err != nil {
			return nil, Metrics{}, fmt.Errorf("simulate static: %w", err)
		}
		e := i * len(capacity) / len(rollouts)
		if r.held() > capacity[e] {
			return nil, Metrics{}, fmt.Errorf(
				"simulate static: rollout %d comes to hold %d tokens, engine %d holds %d", i, r.held(), e, capacity[e],
			)
		}
		engines[e].waiting = append(engines[e].waiting, i)
	}
	var trace []Placement
	var m Metrics
	used := make([]usage, len(capacity))
	for e := range engines {
		s := &engines[e]
		s.rollouts, s.capacity, s.engine = rollouts, float64(capacity[e]), e
		s.run()
		trace, used[e] = append(trace, s.trace...), s.used
		m.Makespan = max(m.Makespan, s.now)
		m.Evictions += s.evictions
		m.Recomputed += int(math.Round(s.lost))
	}
	slices.SortStableFunc(trace, func(a, b Placement) int {
		switch {
		case a.Time < b.Time:
			return -1
		case a.Time > b.Time:
			return 1
		}
		return a.Rollout - b.Rollout
	})
	m.finish(used, capacity, waits)
	return trace, m, nil
}

// static is one engine of the baseline.
type static struct {
	rollouts  []Rollout
	capacity  float64
	engine    int
	waiting   []int // to start when nothing runs
	running   []flight
	now       float64
	used      usage
	trace     []Placement
	evictions int
	lost      float64 // tokens to be computed again
}

// flight is a running rollout: its segment, and when that, or its tool call, ends.
type flight struct {
	rollout, segment int
	held             float64 // tokens at the segment's beginning, or after it during its tool call
	begun, ends      float64
	tool             bool
}

func (s *static) run() {
	for again := false; len(s.waiting) > 0; again = true {
		for _, i := range s.waiting {
			s.trace = append(s.trace, Placement{Time: s.now, Rollout: i, Engine: s.engine, Again: again})
			f := flight{rollout: i, segment: -1, held: float64(s.rollouts[i].Prompt), ends: s.now, tool: true}
			s.running = append(s.running, f)
		}
		s.waiting = nil
		for len(s.running) > 0 {
			s.advance()
		}
	}
}

// advance goes to the next moment at which a segment or a call ends, or the cache is full.
func (s *static) advance() {
	for s.settle() { // what ends now
	}
	held, rate, next, generating := 0.0, 0.0, math.Inf(1), false
	for _, f := range s.running {
		held += s.tokens(f)
		rate += s.rate(f)
		next = min(next, f.ends)
		generating = generating || !f.tool
	}
	if held > s.capacity*(1+1e-12) {
		s.evict()
		return
	}
	if len(s.running) == 0 {
		return
	}
	full := rate > 0 && held+rate*(next-s.now) > s.capacity*(1+1e-12)
	if full { // go just past the moment at which nothing is free
		next = min(next, s.now+math.Max(s.capacity-held, 0)/rate)
	}
	s.used.add(next-s.now, generating, (held + rate*(next-s.now)/2))
	s.now = next
	if full {
		s.evict()
	}
}

// settle moves one flight that ends now to its next phase, and reports whether there was one.
func (s *static) settle() bool {
	for k := range s.running {
		f := &s.running[k]
		if f.ends > s.now {
			continue
		}
		segments := s.rollouts[f.rollout].Segments
		switch {
		case !f.tool && segments[f.segment].Tool > 0:
			f.held += float64(segments[f.segment].Tokens)
			f.tool, f.begun, f.ends = true, s.now, s.now+segments[f.segment].Tool
			return true
		case !f.tool:
			f.held += float64(segments[f.segment].Tokens)
		}
		if f.segment++; f.segment >= len(segments) {
			s.running = slices.Delete(s.running, k, k+1)
			return true
		}
		f.tool, f.begun, f.ends = false, s.now, s.now+segments[f.segment].Seconds
		return true
	}
	return false
}

// rate is how many tokens a second a flight adds.
func (s *static) rate(f flight) float64 {
	if f.tool || f.ends <= f.begun {
		return 0
	}
	return float64(s.rollouts[f.rollout].Segments[f.segment].Tokens) / (f.ends - f.begun)
}

// tokens is how many tokens a flight holds now.
func (s *static) tokens(f flight) float64 { return f.held + s.rate(f)*(s.now-f.begun) }

// evict stops half of the running rollouts, at least one of several.
func (s *static) evict() {
	keep := len(s.running) - max(len(s.running)/2, 1)
	for _, f := range s.running[keep:] {
		s.lost += s.tokens(f)
		s.waiting = append(s.waiting, f.rollout)
	}
	s.evictions += len(s.running) - keep
	s.running = s.running[:keep]
}
