package advantage

import (
	"math"
	"sort"

	"github.com/ropewalk/ropewalk/rl/choice"
)

// VSPO is Value-based Sampling Policy Optimization (VSPO eqs 16–21): prompts whose rewards do not vary are
// replaced by repeats of the prompts from which there is most to learn. Departures: none. Where the paper's
// text and equation differ, a prompt is kept iff σ² ≥ MinVariance, and N counts the prompt's own
// occurrence.
type VSPO struct {
	Alpha       float64     `min:"1"`   // smoothing; 1 weighs all prompts alike
	Temperature float64     `above:"0"` // of the softmax over value scores
	MinVariance float64     `min:"0"`   // a group with less population variance is dropped
	Draws       VSPODraws   `enum:"value|uniform"`
	Weights     VSPOWeights `enum:"smoothed|count"`
}

// VSPODraws chooses how probable a kept prompt is in a draw: by its value score (the paper; also if empty), or uniform
// (random resampling, its Table 8).
type VSPODraws string

// VSPOWeights chooses the weight of a prompt that occurs N times: smoothed (eq 21; also if empty), or N itself (eq 20,
// "no clip" in Tables 5 and 8).
type VSPOWeights string

// The ways of drawing and weighing.
const (
	DrawByValue   VSPODraws   = "value"
	DrawUniformly VSPODraws   = "uniform"
	WeighSmoothed VSPOWeights = "smoothed"
	WeighByCount  VSPOWeights = "count"
)

// DefaultVSPO holds the paper's constants.
var DefaultVSPO = VSPO{Alpha: 2, Temperature: 0.1, MinVariance: 1e-6, Draws: DrawByValue, Weights: WeighSmoothed}

// Validate reports the first bad field.
func (v VSPO) Validate() error { return choice.Check("", v) }

// Prompt is what VSPO says about one group.
type Prompt struct {
	Mean        float64
	Variance    float64 // population
	Value       float64 // (R_max − mean)·variance
	Kept        bool    // variance ≥ MinVariance
	Probability float64 // of being drawn; 0 unless the batch was resampled
	N           int     // occurrences in the resampled batch
	Omega       float64 // weight, to be applied once per prompt
}

// Resampled is the result of VSPO for a batch of groups.
type Resampled struct {
	Prompts []Prompt // one per group, in the order given
	RMax    float64  // greatest reward of the whole batch, dropped groups included
	Picks   []int    // the group of each draw
	// Active is false when no group or every group lacks variance: then nothing is drawn and
	// every N and Omega is 1.
	Active bool
}

// Resample scores groups of rewards and draws one kept group for every dropped one, with replacement.
// It draws by inverse CDF in the given order, so the groups must come in canonical order. Rewards must be
// finite. draw returns uniform numbers in [0, 1).
func (v VSPO) Resample(groups [][]float64, draw func() float64) Resampled {
	out := Resampled{Prompts: make([]Prompt, len(groups)), RMax: maxReward(groups)}
	kept, scratch := make([]int, 0, len(groups)), []float64(nil)
	for i, rewards := range groups {
		p := &out.Prompts[i]
		scratch = append(scratch[:0], rewards...)
		p.Mean, p.Variance = sortedMoments(scratch)
		p.Value = ValueScore(out.RMax, p.Mean, p.Variance)
		p.N, p.Omega = 1, 1
		if p.Kept = p.Variance >= v.MinVariance; p.Kept {
			kept = append(kept, i)
		}
	}
	dropped := len(groups) - len(kept)
	if out.Active = dropped > 0 && len(kept) > 0; !out.Active {
		return out
	}
	v.draw(&out, kept, dropped, draw)
	return out
}

// draw takes n of the kept groups and fills what follows from the draws.
func (v VSPO) draw(out *Resampled, kept []int, n int, draw func() float64) {
	values := make([]float64, len(kept)) // equal values are drawn alike
	if v.Draws != DrawUniformly {
		for k, i := range kept {
			values[k] = out.Prompts[i].Value
		}
	}
	p := SamplingProbabilities(values, v.Temperature)
	for k, i := range kept {
		out.Prompts[i].Probability = p[k]
	}
	cumulative := cumulate(p)
	out.Picks = make([]int, 0, n)
	for range n {
		i := kept[inverseCDF(cumulative, draw())]
		out.Picks = append(out.Picks, i)
		out.Prompts[i].N++
	}
	for i := range out.Prompts {
		prompt := &out.Prompts[i]
		if !prompt.Kept {
			prompt.N, prompt.Omega = 0, 0
			continue
		}
		prompt.Omega = v.weight(prompt.N)
	}
}

// maxReward returns the greatest reward of all groups, or 0 without groups.
func maxReward(groups [][]float64) float64 {
	most, any := math.Inf(-1), false
	for _, rewards := range groups {
		for _, r := range rewards {
			most, any = math.Max(most, r), true
		}
	}
	if !any {
		return 0
	}
	return most
}

// ValueScore is V = (R_max − μ)·σ² with the population variance.
func ValueScore(rMax, mean, variance float64) float64 { return (rMax - mean) * variance }

// SamplingProbabilities is the softmax of values/temperature.
func SamplingProbabilities(values []float64, temperature float64) []float64 {
	if len(values) == 0 {
		return nil
	}
	most := math.Inf(-1)
	for _, v := range values {
		most = math.Max(most, v/temperature)
	}
	out, sum := make([]float64, len(values)), 0.0
	for i, v := range values {
		out[i] = math.Exp(v/temperature - most)
		sum += out[i]
	}
	for i := range out {
		out[i] /= sum
	}
	return out
}

// weight is ω of a prompt that occurs n times.
func (v VSPO) weight(n int) float64 {
	if v.Weights == WeighByCount {
		return float64(n)
	}
	return SmoothingWeight(v.Alpha, n)
}

// SmoothingWeight is ω = α − (α−1)/N: 1 for a prompt that occurs once, towards α for repeats.
func SmoothingWeight(alpha float64, n int) float64 { return alpha - (alpha-1)/float64(n) }

// cumulate returns the running sums of p.
func cumulate(p []float64) []float64 {
	out, sum := make([]float64, len(p)), 0.0
	for i, v := range p {
		sum += v
		out[i] = sum
	}
	return out
}

// inverseCDF returns the first index whose cumulative probability exceeds u, or the last index if rounding leaves
// none.
func inverseCDF(cumulative []float64, u float64) int {
	at := sort.Search(len(cumulative), func(i int) bool { return u < cumulative[i] })
	return min(at, len(cumulative)-1)
}
