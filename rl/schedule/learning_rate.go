package schedule

// Learning rates: linear warm-up to base·(t+1)/warmup, then constant, base·½(1+cos πp) (Loshchilov &
// Hutter 2017, without restarts) or base·(1−p), where p is the share of the decay before step t.
// Departures: none; rStar2 runs constant with a warm-up of 20 steps in its release.

import (
	"fmt"
	"math"

	"github.com/ropewalk/ropewalk/rl/choice"
)

// Kind names how a learning rate decays after its warm-up.
type Kind string

// The kinds of decay.
const (
	Constant Kind = "constant"
	Cosine   Kind = "cosine" // half a cosine (Loshchilov & Hutter 2017), without restarts
	Linear   Kind = "linear"
)

// decay is what a kind of decay states about itself.
type decay struct {
	choice.Choice
	// rate is what remains of the base rate after a share p of the decay; nil = all of it.
	rate func(base, p float64) float64
}

// decays lists the kinds of decay that recipes can name. A new kind is one more entry.
var decays = []decay{
	{
		Choice: choice.Choice{
			Name: string(Constant), Doc: "the learning rate stays the same after the warm-up",
			Source: "rStar2's released code",
		},
	},
	{
		Choice: choice.Choice{
			Name: string(Cosine), Doc: "half a cosine, down to 0 at the last optimiser step",
			Source: "Loshchilov and Hutter 2017, without restarts",
		},
		rate: func(base, p float64) float64 { return base * 0.5 * (1 + math.Cos(math.Pi*p)) },
	},
	{
		Choice: choice.Choice{
			Name: string(Linear), Doc: "a straight line, down to 0 at the last optimiser step", Source: "verl",
		},
		rate: func(base, p float64) float64 { return base * (1 - p) },
	},
}

// Decays lists the kinds of decay as recipes name them.
func Decays() []choice.Choice {
	out := make([]choice.Choice, len(decays))
	for i, d := range decays {
		out[i] = d.Choice
	}
	return out
}

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
	d, ok := choice.Declared(decays, string(kind))
	switch {
	case !ok:
		return 0, fmt.Errorf("learning rate: decay must be one of %v, got %q", choice.Names(decays), kind)
	case d.rate == nil:
		return base, nil
	}
	return d.rate(base, progress(warmup, total, step)), nil
}

// progress returns the share of the decay that lies before a step, in [0, 1].
func progress(warmup, total, step int) float64 {
	switch {
	case step < warmup:
		return 0
	case step >= total:
		return 1
	}
	return float64(step-warmup) / float64(total-warmup)
}
