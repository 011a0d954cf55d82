package resample

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/ropewalk/ropewalk/rl/advantage"
	"github.com/ropewalk/ropewalk/rl/choice"
)

var lowVariance = Rule{
	Choice: choice.Choice{
		Name: "low_variance", Doc: "the groups whose rewards vary least are dropped",
		Source:    "RAGEN (Wang et al. 2025); SPEAR §4.3",
		Field:     "keep the groups whose rewards vary most; null or absent = off",
		Dimension: choice.DynamicFiltering,
		Settings:  LowVariance{Keep: 0.75, Deviation: SampleDeviation},
	},
	Excludes: []Exclusion{{"vspo", "both choose groups by their variance, and VSPO would refill what this drops"}},
	Brief:    func(s any) string { return fmt.Sprintf("most varied %g", s.(LowVariance).Keep) },
}

// Deviation chooses a standard deviation.
type Deviation string

// The sample deviation divides by n−1 (0 of one value), the population deviation by n.
const (
	SampleDeviation     Deviation = "sample"
	PopulationDeviation Deviation = "population"
)

// Of returns the deviation of values, whatever their order; 0 for fewer than two values.
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
// population one in its agents; both order groups of the same size alike. Reverse keeps the groups that vary least
// (the release's std_rev). Groups whose deviations are equal as float32 are ties, and ties keep the order of groups.
// int() may be 0: one group at Keep 0.75 leaves nothing. Departure: the agents' random cut to a power of two is left
// out.
type LowVariance struct {
	Keep      float64   `json:"keep" above:"0" max:"1" doc:"share of the groups kept, rounded down"`
	Deviation Deviation `json:"std" enum:"sample|population" doc:"the standard deviation that orders groups"`
	Reverse   bool      `json:"reverse" doc:"keep those that vary least"`
}

// Link returns the rule itself.
func (l LowVariance) Link(Sampling) Link { return l }

// Validate reports the first bad field.
func (l LowVariance) Validate() error { return choice.Check("low_variance.", l) }

// Chosen says of each group, given its deviation, whether it is kept.
func (l LowVariance) Chosen(deviations []float64) []bool {
	order := make([]int, len(deviations))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		// A difference that float32 cannot represent is rounding, not variance.
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
	groups, rewards := s.groupsWithRows()
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
