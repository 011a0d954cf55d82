package advantage

import (
	"fmt"
	"slices"
)

// OPO (Hao et al. 2025, "On-Policy RL with Optimal Reward Baseline"): a row's score against the mean of its
// group weighted by length, which is the baseline of least variance where the gradients of tokens are
// orthogonal and alike in norm,
//
//	A_i = R_i − Σ_j l_j·R_j / Σ_j l_j
//
// with l the tokens that the policy wrote. Departures: none for groups of two or more. A group of one is its
// own baseline: released code keeps its raw score, see SingleGroup.

// OPO is the estimator with the length-weighted baseline.
type OPO struct {
	SingleGroup SingleGroup // SingleRaw when empty
}

// Validate reports the first bad field.
func (o OPO) Validate() error { return o.SingleGroup.validate() }

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

// weightedMean is the rows' mean score by length: the mean over tokens of the score that each has, which
// equal scores leave exactly as they are. It gathers over scratch.
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
