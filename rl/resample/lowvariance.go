package resample

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/ropewalk/ropewalk/rl/advantage"
)

// Deviation chooses a standard deviation.
type Deviation string

// The sample deviation divides by n−1 (0 of one value), the population deviation by n.
const (
	SampleDeviation     Deviation = "sample"
	PopulationDeviation Deviation = "population"
)

// Of is the deviation of values, whatever their order; 0 of fewer than two.
func (d Deviation) Of(values []float64) float64 {
	if len(values) < 2 {
		return 0
	}
	_, variance := advantage.Moments(values)
	if d != PopulationDeviation {
		n := float64(len(values))
		variance *= n / (n - 1)
	}
	return math.Sqrt(variance)
}

// LowVariance keeps the groups whose rewards vary most:
//
//	the int(Keep·groups) groups with the greatest in-group standard deviation
//
// Source: SPEAR (Dr.BoT) after RAGEN; the deviation is the sample one in SPEAR's mathematics and the
// population one in its agents, which order groups of one size alike. Reverse keeps the least
// instead (the release's std_rev). Groups whose deviations agree to float32 are ties, and ties keep
// group order. Note that int() may be 0: one group at Keep 0.75 leaves nothing. Departure: the
// agents' random cut to a power of two is left out.
type LowVariance struct {
	Keep      float64   // share of the groups, of (0, 1]; 1 keeps all
	Deviation Deviation // SampleDeviation when empty
	Reverse   bool
}

// Validate reports the first bad field.
func (l LowVariance) Validate() error {
	if !(l.Keep > 0 && l.Keep <= 1) {
		return fmt.Errorf("low_variance.keep must be in (0, 1], got %g", l.Keep)
	}
	if !slices.Contains([]Deviation{"", SampleDeviation, PopulationDeviation}, l.Deviation) {
		return fmt.Errorf("low_variance.deviation must be %s or %s, got %q", SampleDeviation, PopulationDeviation, l.Deviation)
	}
	return nil
}

// Chosen says of each group, given its deviation, whether it is kept.
func (l LowVariance) Chosen(deviations []float64) []bool {
	order := make([]int, len(deviations))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		// What float32 cannot tell apart is rounding, not variance.
		x, y := float32(deviations[a]), float32(deviations[b])
		if l.Reverse {
			return cmp.Compare(x, y)
		}
		return cmp.Compare(y, x)
	})
	out := make([]bool, len(deviations))
	for _, i := range order[:int(l.Keep*float64(len(deviations)))] {
		out[i] = true
	}
	return out
}

func (LowVariance) name() string { return "low variance" }

func (LowVariance) draws() bool { return false }

func (l LowVariance) apply(s *step) {
	groups, rewards := s.alive()
	deviations := make([]float64, len(groups))
	for i := range groups {
		deviations[i] = l.Deviation.Of(rewards[i])
	}
	for i, kept := range l.Chosen(deviations) {
		if !kept {
			s.out.dropAll(*groups[i], LowVarianceGroup)
		}
	}
}
