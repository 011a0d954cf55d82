package advantage

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/ropewalk/ropewalk/rl/choice"
)

// GRPO (Shao et al. 2024, outcome rewards) and Dr.GRPO (Liu et al. 2025): over the n
// scores of one group
//
//	A_i = (R_i − μ) / (σ + ε)      GRPO
//	A_i = R_i − μ                  Dr.GRPO
//
// Departures: σ is the sample deviation (n−1), as in all released code; the papers only write std.
// A group of one has no statistics: see SingleGroup.

// SingleGroup says which advantage the row of a group of one gets.
type SingleGroup string

// The two readings of a group of one: mean 0 and deviation 1 (the released code), or no signal.
const (
	SingleRaw  SingleGroup = "raw"
	SingleZero SingleGroup = "zero"
)

var grpo = Declaration{
	Choice: choice.Choice{
		Name: "grpo", Doc: "reward minus the group's mean, over its deviation; with std: false, Dr.GRPO",
		Source:   "GRPO (Shao et al. 2024); Dr.GRPO (Liu et al. 2025)",
		Settings: grpoSettings{Std: true, SingleGroup: SingleRaw, Stats: StatsTurnRows},
	},
	GroupMeans: true,
}

// grpoSettings are the parameters of GRPO in a recipe.
type grpoSettings struct {
	Std            bool        `json:"std" doc:"divide by the group's sample standard deviation; false is Dr.GRPO's form (for gigpo: mean_norm)"`
	SingleGroup    SingleGroup `json:"single_group" enum:"raw|zero" doc:"advantage in a group of one: its reward (raw) or 0 (zero)"`
	Stats          Stats       `json:"stats" enum:"turn_rows|per_trajectory" quiet:"true" doc:"what a group's mean and deviation run over, in layout turns: every turn's row, or the first row of each trajectory"`
	InvalidPenalty float64     `json:"invalid_penalty" min:"0" max:"1000" quiet:"true" doc:"taken from the score of a turn's row whose action is invalid, and from its step return"`
}

// Estimate is GRPO over whole trajectories, or over the rows of turns.
func (g grpoSettings) Estimate(b Batch) (out Estimates, err error) {
	norm := Group{Std: g.Std, SingleGroup: g.SingleGroup}
	if b.TurnRows {
		out.Rows, err = TurnRows{Norm: norm, Stats: g.Stats}.Estimate(b.Scores(), b.Names())
	} else {
		out.Rows, err = norm.Estimate(b.Scores(), b.Groups())
	}
	return out, err
}

// DefaultEpsilon is added to the standard deviation.
const DefaultEpsilon = 1e-6

// Group is the group-relative estimator: GRPO with Std, Dr.GRPO without.
type Group struct {
	Std         bool        // divide by the sample standard deviation + Epsilon
	Epsilon     float64     `min:"0"`         // > 0 where Std is set; DefaultEpsilon when 0
	SingleGroup SingleGroup `enum:"raw|zero"` // SingleRaw when empty
}

// Validate reports the first bad field.
func (g Group) Validate() error { return choice.Check("", g) }

// Estimate returns the advantage of each row from its score and the name of its group.
func (g Group) Estimate(scores []float64, groups []string) ([]float64, error) {
	if err := g.Validate(); err != nil {
		return nil, err
	}
	members, offset, err := byGroup(scores, groups)
	if err != nil {
		return nil, err
	}
	out, scratch := make([]float64, len(scores)), []float64(nil)
	for k := range len(offset) - 1 { // groups are independent, so any order will do
		rows := members[offset[k]:offset[k+1]]
		scratch = gather(scratch, scores, rows)
		g.fill(out, scores, rows, scratch)
	}
	return out, nil
}

// byGroup lays the rows of each group together, as bucket does, and checks the scores.
func byGroup(scores []float64, groups []string) (members, offset []int, err error) {
	if len(scores) != len(groups) {
		return nil, nil, fmt.Errorf("estimate advantages: %d scores for %d group names", len(scores), len(groups))
	}
	for i, s := range scores {
		if !finite(s) {
			return nil, nil, fmt.Errorf("estimate advantages: score of row %d of group %s is %g", i, groups[i], s)
		}
	}
	ids, distinct := intern(len(groups), func(i int) string { return groups[i] })
	members, offset = bucket(ids, len(distinct))
	return members, offset, nil
}

// againstOthers calls fill for each group of two or more rows, to write their advantages. The row of a group of one has
// no other row to be compared with; single says what it gets.
func againstOthers(
	scores []float64, groups []string, single SingleGroup, fill func(out []float64, rows []int),
) ([]float64, error) {
	members, offset, err := byGroup(scores, groups)
	if err != nil {
		return nil, err
	}
	out := make([]float64, len(scores))
	for k := range len(offset) - 1 {
		rows := members[offset[k]:offset[k+1]]
		switch {
		case len(rows) > 1:
			fill(out, rows)
		case single != SingleZero:
			out[rows[0]] = scores[rows[0]]
		}
	}
	return out, nil
}

// fill writes the advantages of one group's rows, with the mean and deviation of sample. It sorts sample.
func (g Group) fill(out, scores []float64, rows []int, sample []float64) {
	mean, deviation := 0.0, 1.0
	if len(sample) > 1 {
		mean, deviation = meanDeviation(sample)
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

// gather overwrites scratch with the rows' values and returns it.
func gather(scratch, values []float64, rows []int) []float64 {
	scratch = scratch[:0]
	for _, i := range rows {
		scratch = append(scratch, values[i])
	}
	return scratch
}

// meanDeviation returns the mean and the sample standard deviation of two or more values, which it
// sorts.
func meanDeviation(values []float64) (mean, deviation float64) {
	mean, variance := sortedMoments(values)
	n := float64(len(values))
	return mean, math.Sqrt(variance * n / (n - 1))
}

// Moments returns the mean and the population variance of values, in whatever order they come. It returns
// (0, 0) for an empty list. Equal values give exactly that value and 0.
func Moments(values []float64) (mean, variance float64) {
	return sortedMoments(slices.Clone(values))
}

// sortedMoments is Moments over values that it may sort.
func sortedMoments(values []float64) (mean, variance float64) {
	if len(values) == 0 {
		return 0, 0
	}
	slices.Sort(values)
	// Sum offsets from the least value, so that equal values leave no rounding error.
	least, n := values[0], float64(len(values))
	offset := 0.0
	for _, v := range values {
		offset += v - least
	}
	mean = least + offset/n
	for _, v := range values {
		d := (v - least) - offset/n
		variance += d * d
	}
	return mean, variance / n
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
