package scheduler

import (
	"cmp"
	"fmt"
	"math"
)

// Reserve says how much room an episode is given.
type Reserve string

// WorstStretch reserves the worst case of the next stretch of generation (Spec.Stretch): when it has ended, the episode
// needs room for another one, or it waits. A running episode is never evicted. So that few have to wait, a new episode
// also needs room for the expected length. Without stretches it is Worst.
//
// Worst reserves the most tokens that an episode can ever come to hold, as the paper describes it. Nothing is evicted
// and no one waits, but the room that short episodes do not use is lost.
//
// Expected reserves the expected length only. Engines then have to evict running episodes, and report it. An episode
// that was evicted once is given its worst case.
const (
	WorstStretch Reserve = "stretch"
	Worst        Reserve = "worst"
	Expected     Reserve = "expected"
)

// Class separates episodes that share the engines.
type Class int

// The classes.
const (
	Training Class = iota
	Evaluation
	classes
)

// String names the class.
func (c Class) String() string {
	if c == Evaluation {
		return "evaluation"
	}
	return "training"
}

// Settings are those of a Core. Default returns those that commands use.
type Settings struct {
	Reserve Reserve // WorstStretch when empty
	// Length is how many tokens episodes are expected to hold in the end, until enough of them have ended: for example
	// the mean of the step before. 0 = not known; then Spec.Most is expected at first. A new episode needs room for
	// Margin of what is expected; 0 = 0.8, because not all episodes come to be that long at once.
	Length int
	Margin float64
	// Busy is how many running turns keep an engine busy; 0 = 8. A busy engine takes no episode whose room would cost
	// another one its cache; one that is not busy does.
	Busy int
	// Park is how many seconds of a tool call an episode keeps its room. Hold keeps it during every call.
	Park float64
	Hold bool
	// Weights are the shares of the room that the classes get while both have episodes queued; 0 = 1. No class starves,
	// because no share is 0.
	Weights [classes]float64
	// Straggler is how many times slower than others with as many rows an engine is a straggler; 0 = 4. A straggler
	// takes new episodes one after the other only, and only those that it would finish before the other engines could
	// have finished the queue. Turns that already run on it are taken off if they would finish earlier elsewhere.
	Straggler float64
	// Rescues is how often at most an episode's running turn is taken off a straggler; 0 = 2.
	Rescues int
}

// Default returns the settings of commands: room for the worst case of a stretch, which is freed when a call takes
// longer than a second.
func Default() Settings { return Settings{Reserve: WorstStretch, Park: 1} }

// resolved fills in the defaults, and reports the first bad field.
func (s Settings) resolved() (Settings, error) {
	s.Reserve, s.Rescues, s.Busy = cmp.Or(s.Reserve, WorstStretch), cmp.Or(s.Rescues, 2), cmp.Or(s.Busy, 8)
	s.Margin, s.Straggler = cmp.Or(s.Margin, 0.8), cmp.Or(s.Straggler, 4)
	for c, weight := range s.Weights {
		s.Weights[c] = cmp.Or(weight, 1)
		if !(s.Weights[c] > 0) || math.IsInf(s.Weights[c], 0) {
			return s, fmt.Errorf("weights[%s] must be finite and > 0, got %g", Class(c), s.Weights[c])
		}
	}
	switch {
	case s.Reserve != WorstStretch && s.Reserve != Worst && s.Reserve != Expected:
		return s, fmt.Errorf("reserve must be %s, %s or %s, got %q", WorstStretch, Worst, Expected, s.Reserve)
	case !duration(s.Park):
		return s, fmt.Errorf("park must be finite and ≥ 0, got %g", s.Park)
	case !(s.Margin > 0) || math.IsInf(s.Margin, 0):
		return s, fmt.Errorf("margin must be finite and > 0, got %g", s.Margin)
	case !(s.Straggler > 1):
		return s, fmt.Errorf("straggler must be > 1, got %g", s.Straggler)
	case s.Rescues < 0 || s.Length < 0 || s.Busy < 0:
		return s, fmt.Errorf("rescues, length and busy must be ≥ 0, got %d, %d and %d", s.Rescues, s.Length, s.Busy)
	}
	return s, nil
}

func duration(s float64) bool { return s >= 0 && !math.IsInf(s, 0) }
