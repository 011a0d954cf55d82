package diagnose

// Load and latency of the tools (rStar2-Agent figure 6): seconds from a call's dispatch to its
// response, calls per step (the paper reports 45,000 at 0.3 s) and how many calls wait or run at
// a time. Departures: in addition to the paper's mean there are percentiles and the part of the latency spent
// waiting. Depths are weighted by time over each step's span, from its first dispatch to its last response.

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/ropewalk/ropewalk/rl/internal/exact"
)

// Call is one tool call. Times are seconds on any one clock.
type Call struct {
	Step     int
	Queued   float64 // dispatched by the rollout
	Started  float64 // taken up by a worker, ≥ Queued
	Finished float64 // response received, ≥ Started
}

// Latency gathers the calls of steps; it keeps every call, since percentiles need them.
type Latency struct{ calls []Call }

// LatencyReport describes them; all is 0 without calls.
type LatencyReport struct {
	Calls                      int
	Latency                    Spread  // Finished − Queued, seconds
	P50, P90, P95, P99         float64 // of that
	Wait                       Spread  // Started − Queued, seconds
	PerStep                    Spread  // calls per step that has any
	QueueDepth, InFlight       float64 // mean number of calls waiting, and waiting or running
	MaxQueueDepth, MaxInFlight int
}

// Add adds calls. If one is refused, none is added.
func (l *Latency) Add(calls ...Call) error {
	for i, c := range calls {
		if !usable(c.Queued) || !usable(c.Finished) || !(c.Queued <= c.Started && c.Started <= c.Finished) {
			return fmt.Errorf("%w: call %d runs from %g over %g to %g", ErrBadInput, i, c.Queued, c.Started, c.Finished)
		}
	}
	l.calls = append(l.calls, calls...)
	return nil
}

// Merge adds another shard's calls.
func (l *Latency) Merge(o *Latency) { l.calls = append(l.calls, o.calls...) }

// Report describes the calls.
func (l *Latency) Report() LatencyReport {
	var latency, wait, perStep series
	var seconds []float64
	steps := map[int][]Call{}
	for _, c := range l.calls {
		seconds = append(seconds, c.Finished-c.Queued)
		latency.add(c.Finished - c.Queued)
		wait.add(c.Started - c.Queued)
		steps[c.Step] = append(steps[c.Step], c)
	}
	slices.Sort(seconds)
	var queue, flight depth
	for _, step := range slices.Sorted(maps.Keys(steps)) {
		calls := steps[step]
		perStep.add(float64(len(calls)))
		queue.add(calls, func(c Call) float64 { return c.Started })
		flight.add(calls, func(c Call) float64 { return c.Finished })
	}
	out := LatencyReport{
		Calls: latency.N, Latency: latency.spread(), Wait: wait.spread(), PerStep: perStep.spread(),
		QueueDepth: queue.mean(), MaxQueueDepth: queue.most, InFlight: flight.mean(), MaxInFlight: flight.most,
	}
	if len(seconds) > 0 {
		out.P50, out.P90 = quantile(seconds, 0.50), quantile(seconds, 0.90)
		out.P95, out.P99 = quantile(seconds, 0.95), quantile(seconds, 0.99)
	}
	return out
}

// depth is a number of calls over time. Its mean is the calls' summed seconds over the span's: a
// call is in the integral of the depth for as long as it lasts.
type depth struct {
	seconds, span exact.Sum
	most          int
}

// add adds a step whose calls count from Queued up to their end.
func (d *depth) add(calls []Call, end func(Call) float64) {
	type change struct {
		at float64
		by int
	}
	first, last := calls[0].Queued, calls[0].Finished
	changes := make([]change, 0, 2*len(calls))
	for _, c := range calls {
		first, last = min(first, c.Queued), max(last, c.Finished)
		d.seconds.Add(end(c) - c.Queued)
		changes = append(changes, change{c.Queued, 1}, change{end(c), -1})
	}
	d.span.Add(last - first)
	// At one instant calls leave before others come.
	slices.SortFunc(changes, func(a, b change) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.by, b.by)) })
	now := 0
	for _, c := range changes {
		now += c.by
		d.most = max(d.most, now)
	}
}

func (d *depth) mean() float64 {
	if span := d.span.Value(); span > 0 {
		return d.seconds.Value() / span
	}
	return 0
}
