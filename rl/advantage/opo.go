package advantage

import (
	"fmt"
	"slices"

	"github.com/ropewalk/ropewalk/rl/choice"
)

// OPO (Hao et al. 2025, "On-Policy RL with Optimal Reward Baseline"): a row's score minus the mean score of its
// group weighted by length. This is the baseline with the least variance if the gradients of tokens are
// orthogonal and have similar norms,
//
//	A_i = R_i − Σ_j l_j·R_j / Σ_j l_j
//
// where l is the number of tokens that the policy wrote. Departures: none for groups of two or more. A group of
// one is its own baseline; released code keeps its raw score, see SingleGroup.

var opo = Declaration{
	Choice: choice.Choice{
		Name: "opo", Doc: "reward minus the group's mean weighted by length", Source: "OPO (Hao et al. 2025)",
		Settings: opoSettings{SingleGroup: SingleRaw},
	},
	GroupMeans: true,
}

// opoSettings are the parameters of OPO in a recipe.
type opoSettings struct {
	SingleGroup    SingleGroup `json:"single_group"`
	InvalidPenalty float64     `json:"invalid_penalty"`
}

// Estimate is OPO over rows of either layout, whose length is what the policy wrote.
func (o opoSettings) Estimate(b Batch) (out Estimates, err error) {
	lengths := each(b, func(s Sample) int { return s.Written })
	out.Rows, err = OPO{SingleGroup: o.SingleGroup}.Estimate(b.Scores(), lengths, b.Groups())
	return out, err
}

// OPO is the estimator with the length-weighted baseline.
type OPO struct {
	SingleGroup SingleGroup `enum:"raw|zero"` // SingleRaw when empty
}

// Validate reports the first bad field.
func (o OPO) Validate() error { return choice.Check("", o) }

// Estimate returns the advantage of each row from its score, its length in tokens, ≥ 1, and the name of its
// group.
func (o OPO) Estimate(scores []float64, lengths []int, groups []string) ([]float64, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if len(lengths) != len(scores) {
		return nil, fmt.Errorf("estimate advantages: %d lengths for %d scores", len(lengths), len(scores))
	}
	for i, l := range lengths {
		if l < 1 {
			return nil, fmt.Errorf("estimate advantages: length of row %d must be ≥ 1, got %d", i, l)
		}
	}
	var scratch []float64
	return againstOthers(scores, groups, o.SingleGroup, func(out []float64, rows []int) {
		var baseline float64
		baseline, scratch = weightedMean(scratch, scores, lengths, rows)
		for _, i := range rows {
			out[i] = scores[i] - baseline
		}
	})
}

// weightedMean returns the rows' mean score weighted by length, that is the mean over tokens. Equal scores give
// exactly that score. It overwrites scratch and returns it as used.
func weightedMean(scratch, scores []float64, lengths []int, rows []int) (mean float64, used []float64) {
	least, tokens := scores[rows[0]], 0
	for _, i := range rows {
		least = min(least, scores[i])
		tokens += lengths[i]
	}
	scratch = scratch[:0]
	for _, i := range rows {
		scratch = append(scratch, float64(lengths[i])*(scores[i]-least))
	}
	slices.Sort(scratch)
	sum := 0.0
	for _, s := range scratch {
		sum += s
	}
	return least + sum/float64(tokens), scratch
}
