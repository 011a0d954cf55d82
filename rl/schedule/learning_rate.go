package schedule

// Learning rates: linear warm-up to base·(t+1)/warmup, then constant, base·½(1+cos πp) (Loshchilov &
// Hutter 2017, without restarts) or base·(1−p), with p the share of the decay behind step t.
// Departures: none; rStar2 runs constant with a warm-up of 20 steps in its release.

import (
	"fmt"
	"math"
)

// Kind names how a learning rate decays after its warm-up.
type Kind string

// The kinds of decay.
const (
	Constant Kind = "constant"
	Cosine   Kind = "cosine" // half a cosine (Loshchilov & Hutter 2017), without restarts
	Linear   Kind = "linear"
)

// Kinds lists every kind of decay.
func Kinds() []Kind { return []Kind{Constant, Cosine, Linear} }

// LearningRate returns the rate of a step, 0 ≤ step. Step warmup is the first at base (the last
// warm-up step already reaches it); a decaying rate would be 0 at step total, and stays 0 beyond.
// total is read only by kinds that decay; a total within the warm-up leaves no decay before it.
func LearningRate(kind Kind, base float64, warmup, total, step int) (float64, error) {
	switch {
	case step < 0 || warmup < 0:
		return 0, fmt.Errorf("learning rate: step and warm-up must not be negative, got %d and %d", step, warmup)
	case !(base >= 0) || math.IsInf(base, 0):
		return 0, fmt.Errorf("learning rate: base must be finite and not negative, got %g", base)
	case kind != Constant && total <= 0:
		return 0, fmt.Errorf("learning rate: %s decay needs a total number of steps, got %d", kind, total)
	}
	if step < warmup {
		base *= float64(step+1) / float64(warmup)
	}
	switch kind {
	case Constant:
		return base, nil
	case Cosine:
		return base * 0.5 * (1 + math.Cos(math.Pi*progress(warmup, total, step))), nil
	case Linear:
		return base * (1 - progress(warmup, total, step)), nil
	}
	return 0, fmt.Errorf("learning rate: decay must be one of %v, got %q", Kinds(), kind)
}

// progress is the share of the decay that lies behind a step, of [0, 1].
func progress(warmup, total, step int) float64 {
	switch {
	case step < warmup:
		return 0
	case step >= total:
		return 1
	}
	return float64(step-warmup) / float64(total-warmup)
}
