package diagnose

// What VSPO did to a batch (PRS/VSPO eqs 17–21): the prompts' value scores V, the probabilities p of
// drawing them, how often each occurs (N), the smoothing weights ω, and the share of the batch
// that was replaced, which is the number of draws over |B|. Departures: none.

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
)

// Value is VSPO's result for one prompt of the batch.
type Value struct {
	Score       float64 // V ≥ 0 of rewards up to R_max
	Probability float64 // p; 0 where nothing was drawn
	N           int     // occurrences in the resampled batch; 0 of a dropped prompt
	Omega       float64 // ω, read where N > 0
}

// WeightBin counts prompts by ω.
type WeightBin struct {
	Omega   float64
	Prompts int
}

// Values gathers the prompts of a step.
type Values struct {
	score, probability series
	n                  histogram
	omega              map[float64]int
}

// ValueReport holds the distributions.
type ValueReport struct {
	Prompts, Kept int
	Score         Spread // over all prompts
	Probability   Spread // over kept prompts
	N             []Bin
	Omega         []WeightBin // over kept prompts, least weight first
	Replaced      float64     // Σ max(N−1, 0)/|B|
}

// Add adds prompts. If one is refused, none is added.
func (v *Values) Add(prompts ...Value) error {
	for i, p := range prompts {
		if !usable(p.Score) || !(p.Probability >= 0 && p.Probability <= 1) || p.N < 0 || p.N > 0 && !usable(p.Omega) {
			return fmt.Errorf("%w: prompt %d is %+v", ErrBadInput, i, p)
		}
	}
	if v.omega == nil {
		v.omega = map[float64]int{}
	}
	for _, p := range prompts {
		v.score.add(p.Score)
		v.n.add(p.N, 1)
		if p.N > 0 {
			v.probability.add(p.Probability)
			v.omega[p.Omega]++
		}
	}
	return nil
}

// Merge adds another shard's prompts.
func (v *Values) Merge(o *Values) {
	if v.omega == nil {
		v.omega = map[float64]int{}
	}
	v.score.merge(&o.score)
	v.probability.merge(&o.probability)
	v.n.merge(o.n)
	for omega, prompts := range o.omega {
		v.omega[omega] += prompts
	}
}

// Report returns the distributions.
func (v *Values) Report() ValueReport {
	out := ValueReport{
		Prompts: v.score.N, Kept: v.probability.N,
		Score: v.score.spread(), Probability: v.probability.spread(), N: v.n.bins(),
	}
	for _, omega := range slices.SortedFunc(maps.Keys(v.omega), cmp.Compare[float64]) {
		out.Omega = append(out.Omega, WeightBin{omega, v.omega[omega]})
	}
	draws := 0
	for _, bin := range out.N {
		draws += max(bin.Value-1, 0) * bin.Count
	}
	out.Replaced = share(draws, out.Prompts)
	return out
}
