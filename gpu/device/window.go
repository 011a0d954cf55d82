package device

import "time"

// window measures, from samples, the share of the last span in which a condition held. Each sample counts for the time
// since the previous sample.
type window struct {
	span    time.Duration
	samples []sample // oldest first
	raised  bool     // the share has passed the upper bound and not yet fallen below the lower one
}

type sample struct {
	at   time.Time
	took time.Duration // since the sample before
	held bool
}

// Bounds of the share: a reason comes at the upper one and goes below the lower one, so that it does not flicker.
// Before half of the span has been seen none comes.
const (
	throttleSpan  = 10 * time.Minute
	throttleRaise = 0.5
	throttleClear = 0.25
)

// add takes a sample. A gap of more than a quarter of the span was no observation and counts for nothing.
func (w *window) add(at time.Time, held bool) {
	s := sample{at: at, held: held}
	if n := len(w.samples); n > 0 {
		if gap := at.Sub(w.samples[n-1].at); gap <= w.span/4 {
			s.took = gap
		}
	}
	w.samples = append(w.samples, s)
	first := 0
	for first < len(w.samples) && at.Sub(w.samples[first].at) >= w.span {
		first++
	}
	w.samples = w.samples[first:]
	share, seen := w.share()
	switch {
	case seen >= w.span/2 && share >= throttleRaise:
		w.raised = true
	case share < throttleClear:
		w.raised = false
	}
}

// share is the part of the time seen in which it held, 0 if none was seen.
func (w *window) share() (share float64, seen time.Duration) {
	var held time.Duration
	for _, s := range w.samples {
		seen += s.took
		if s.held {
			held += s.took
		}
	}
	if seen == 0 {
		return 0, 0
	}
	return float64(held) / float64(seen), seen
}
