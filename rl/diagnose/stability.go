package diagnose

// When a run counts as stable (ARLArena section 3, step 4 of its grid search): the variance of the
// success rate over the last 20% of the training steps is below a threshold. Departures: the paper
// names no threshold, and StableVariance is ours; the variance is the population one, and the window holds
// ⌈0.2·n⌉ steps.

import (
	"fmt"

	"github.com/ropewalk/ropewalk/rl/internal/exact"
)

// DefaultTail is the share of the steps over which stability is judged.
const DefaultTail = 0.2

// StableVariance is the threshold: success that varies by 5 points from step to step.
const StableVariance = 0.05 * 0.05

// Stability describes the end of a run.
type Stability struct {
	Steps    int     // in the window
	Mean     float64 // success rate over the window
	Variance float64 // population; 0 of fewer than two steps
}

// Settled reports whether the run counts as stable.
func (s Stability) Settled() bool { return s.Steps >= 2 && s.Variance < StableVariance }

// Stable describes the success rates of all steps, in order, over the last share tail of them, of
// (0, 1]. Rates lie in [0, 1]. Without steps all is 0.
func Stable(success []float64, tail float64) (Stability, error) {
	if !(tail > 0 && tail <= 1) {
		return Stability{}, fmt.Errorf("stability: tail must lie in (0, 1], got %g", tail)
	}
	for step, rate := range success {
		if !(rate >= 0 && rate <= 1) {
			return Stability{}, fmt.Errorf("%w: success rate of step %d is %g", ErrBadInput, step, rate)
		}
	}
	n := roundedShare(tail, len(success))
	var m exact.Moments
	for _, rate := range success[len(success)-n:] {
		m.Add(rate)
	}
	return Stability{Steps: n, Mean: m.Mean(), Variance: m.Variance()}, nil
}
