package advantage

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// SingleGroup says what a group of one row gets.
type SingleGroup string

// The two readings of a group of one: mean 0 and deviation 1 (the released code), or no signal.
const (
	SingleRaw  SingleGroup = "raw"
	SingleZero SingleGroup = "zero"
)

// DefaultEpsilon is added to the standard deviation.
const DefaultEpsilon = 1e-6

// Group is the group-relative estimator: GRPO with Std, Dr.GRPO without.
type Group struct {
	Std         bool        // divide by the sample standard deviation + Epsilon
	Epsilon     float64     // > 0 where Std is set; DefaultEpsilon when 0
	SingleGroup SingleGroup // SingleRaw when empty
}

// Validate reports the first bad field.
func (g Group) Validate() error {
	if g.Epsilon < 0 || math.IsNaN(g.Epsilon) || math.IsInf(g.Epsilon, 0) {
		return fmt.Errorf("epsilon must be finite and not negative, got %g", g.Epsilon)
	}
	switch g.SingleGroup {
	case "", SingleRaw, SingleZero:
		return nil
	}
	return fmt.Errorf("single_group must be %s or %s, got %q", SingleRaw, SingleZero, g.SingleGroup)
}

// Estimate returns the advantage of each row from its score and the name of its group.
func (g Group) Estimate(scores []float64, groups []string) ([]float64, error) {
	if err := g.Validate(); err != nil {
		return nil, err
	}
	if len(scores) != len(groups) {
		return nil, fmt.Errorf("estimate advantages: %d scores for %d group names", len(scores), len(groups))
	}
	members := map[string][]int{}
	for i, name := range groups {
		if math.IsNaN(scores[i]) || math.IsInf(scores[i], 0) {
			return nil, fmt.Errorf("estimate advantages: score of row %d of group %s is %g", i, name, scores[i])
		}
		members[name] = append(members[name], i)
	}
	out := make([]float64, len(scores))
	for _, rows := range members { // groups do not meet, so their order is free
		g.fill(out, scores, rows)
	}
	return out, nil
}

// fill writes the advantages of one group's rows.
func (g Group) fill(out, scores []float64, rows []int) {
	mean, deviation := 0.0, 1.0
	if len(rows) > 1 {
		values := make([]float64, len(rows))
		for k, i := range rows {
			values[k] = scores[i]
		}
		mean, deviation = meanDeviation(values)
	} else if g.SingleGroup == SingleZero {
		return
	}
	scale := 1.0
	if g.Std {
		scale = deviation + cmp.Or(g.Epsilon, DefaultEpsilon)
	}
	for _, i := range rows {
		out[i] = (scores[i] - mean) / scale
	}
}

// meanDeviation returns the mean and the sample standard deviation of two or more values.
func meanDeviation(values []float64) (mean, deviation float64) {
	mean, variance := Moments(values)
	n := float64(len(values))
	return mean, math.Sqrt(variance * n / (n - 1))
}

// Moments returns the mean and the population variance of values, whatever their order; (0, 0)
// of none. Equal values give exactly themselves and 0.
func Moments(values []float64) (mean, variance float64) {
	if len(values) == 0 {
		return 0, 0
	}
	sorted := slices.Sorted(slices.Values(values))
	// Sums of offsets from the least value: equal values leave no rounding behind.
	least, n := sorted[0], float64(len(sorted))
	offset := 0.0
	for _, v := range sorted {
		offset += v - least
	}
	mean = least + offset/n
	for _, v := range sorted {
		d := (v - least) - offset/n
		variance += d * d
	}
	return mean, variance / n
}
