package admission

import (
	"fmt"
	"math"
)

// Rollout is one trajectory of a simulation: what it reserves and how long its parts take.
type Rollout struct {
	Reservation int // tokens, at least Prompt and all of the segments' Tokens
	Prompt      int // tokens
	Segments    []Segment
}

// Segment is one stretch of generation and the tool call that follows.
type Segment struct {
	Seconds float64 // of generation
	Tokens  int     // that it adds to the context, its tool's result included
	Tool    float64 // seconds that the tool takes; 0 = no call
}

// held is how many tokens the rollout holds in the end.
func (r Rollout) held() int {
	n := r.Prompt
	for _, s := range r.Segments {
		n += s.Tokens
	}
	return n
}

// validate reports a rollout that contradicts itself.
func (r Rollout) validate(i int) error {
	if r.Prompt < 0 || r.Reservation < 1 {
		return fmt.Errorf("rollout %d has a prompt of %d and a reservation of %d tokens", i, r.Prompt, r.Reservation)
	}
	for k, s := range r.Segments {
		if !duration(s.Seconds) || !duration(s.Tool) || s.Tokens < 0 {
			return fmt.Errorf(
				"segment %d of rollout %d takes %g s and %g s for %d tokens", k, i, s.Seconds, s.Tool, s.Tokens,
			)
		}
	}
	if r.held() > r.Reservation {
		return fmt.Errorf("rollout %d comes to hold %d tokens and reserves %d", i, r.held(), r.Reservation)
	}
	return nil
}

func duration(s float64) bool { return s >= 0 && !math.IsInf(s, 0) }

// Placement is one line of a trace.
type Placement struct {
	Time    float64 // seconds since the start
	Rollout int
	Engine  int
	Again   bool // after a parked tool call, or an eviction
}

// Metrics say how well a schedule used its engines.
type Metrics struct {
	Makespan   float64   // seconds until the last rollout ended
	Idle       []float64 // per engine: share of the makespan in which it generated nothing
	Reserved   []float64 // per engine: mean share of its capacity that was reserved, or held
	Evictions  int       // running rollouts that lost their cache to others
	Parked     int       // rollouts whose room was freed during a tool call, each time counted
	Recomputed int       // tokens computed again after either
	MeanWait   float64   // seconds from the start to a rollout's first placement
	MaxWait    float64
}

// usage integrates what an engine does over time.
type usage struct{ busy, held float64 }

// add counts a stretch of time.
func (u *usage) add(seconds float64, generating bool, held float64) {
	if generating {
		u.busy += seconds
	}
	u.held += held * seconds
}

// finish turns integrals into shares; without any time an engine was idle throughout.
func (m *Metrics) finish(used []usage, capacity []int, waits []float64) {
	for e, u := range used {
		idle, share := 1.0, 0.0
		if m.Makespan > 0 {
			idle = 1 - u.busy/m.Makespan
			if capacity[e] > 0 {
				share = u.held / m.Makespan / float64(capacity[e])
			}
		}
		m.Idle, m.Reserved = append(m.Idle, idle), append(m.Reserved, share)
	}
	for _, w := range waits {
		m.MeanWait += w / float64(len(waits))
		m.MaxWait = max(m.MaxWait, w)
	}
}
