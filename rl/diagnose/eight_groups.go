package diagnose

// Where a step's divergence comes from (ARLArena figures 4 c, d and S1): samples with an advantage
// are split three ways,
//
//	sign of A  ×  IS > 1 or ≤ 1  ×  entropy above a threshold or not,
//
// and each of the eight groups has its count, mean ratio and share of the step's KL. Collapsing runs
// show a growing share of A−|IS<=1. Departures: the appendix says "IS > 0", which always holds. The paper
// gives no threshold; the default is the median of the step's samples. Samples with A = 0 are in no group, and
// their KL is not part of the total.

import (
	"fmt"
	"math"

	"github.com/ropewalk/ropewalk/rl/internal/exact"
)

// Sample is one row or one token of the partition.
type Sample struct {
	Advantage float64
	Ratio     float64 // importance ratio > 0, of the sequence or the token
	Entropy   float64 // nats
	KL        float64 // of the current from the reference policy, nats
}

// EightGroups gathers samples by group.
type EightGroups struct {
	threshold float64
	count     [8]int
	ratio, kl [8]exact.Sum
}

// EightGroup is one of the eight.
type EightGroup struct {
	Positive bool // A > 0, else A < 0
	Above    bool // IS > 1, else ≤ 1
	High     bool // entropy > threshold, else ≤ it
	Count    int
	Ratio    float64 // mean; 0 of an empty group
	KLShare  float64 // of the KL over all groups; 0 where that is 0
}

// Name is the group's name in the paper's signs, such as "A-|IS<=1|H+".
func (g EightGroup) Name() string {
	name := map[bool]string{true: "A+", false: "A-"}[g.Positive]
	name += map[bool]string{true: "|IS>1", false: "|IS<=1"}[g.Above]
	return name + map[bool]string{true: "|H+", false: "|H-"}[g.High]
}

// MedianEntropy returns the median of the samples' entropies, 0 for an empty list.
func MedianEntropy(samples []Sample) float64 {
	values := make([]float64, len(samples))
	for i, s := range samples {
		values[i] = s.Entropy
	}
	return Percentile(values, 0.5)
}

// NewEightGroups returns an empty partition at a threshold of the entropy.
func NewEightGroups(threshold float64) (*EightGroups, error) {
	if math.IsNaN(threshold) || math.IsInf(threshold, 0) {
		return nil, fmt.Errorf("eight groups: entropy threshold must be finite, got %g", threshold)
	}
	return &EightGroups{threshold: threshold}, nil
}

// Add adds samples. If one is refused, none is added.
func (g *EightGroups) Add(samples ...Sample) error {
	for i, s := range samples {
		if !usable(s.Advantage) || !usable(s.Entropy) || !usable(s.KL) || !(s.Ratio >= 0) || !usable(s.Ratio) {
			return fmt.Errorf("%w: sample %d is %+v", ErrBadInput, i, s)
		}
	}
	for _, s := range samples {
		if s.Advantage == 0 {
			continue
		}
		at := 0
		for bit, set := range []bool{s.Advantage < 0, s.Ratio <= 1, s.Entropy <= g.threshold} {
			if set {
				at |= 4 >> bit
			}
		}
		g.count[at]++
		g.ratio[at].Add(s.Ratio)
		g.kl[at].Add(s.KL)
	}
	return nil
}

// Report returns the eight groups: A+ before A−, then IS>1 before IS<=1, then H+ before H−.
func (g *EightGroups) Report() [8]EightGroup {
	var out [8]EightGroup
	var total exact.Sum
	for i := range g.kl {
		total.Merge(&g.kl[i])
	}
	whole := total.Value()
	for i := range out {
		out[i] = EightGroup{
			Positive: i&4 == 0, Above: i&2 == 0, High: i&1 == 0,
			Count: g.count[i], Ratio: meanOf(g.ratio[i].Value(), g.count[i]),
		}
		if whole != 0 {
			out[i].KLShare = g.kl[i].Value() / whole
		}
	}
	return out
}

// Samples returns one sample for every live row: mean advantage, sequence ratio, mean entropy and
// mean k3 of the reference. It reads every slice of a row.
func Samples(rows []Row) ([]Sample, error) {
	if err := checkPolicyRows(rows); err != nil {
		return nil, err
	}
	var out []Sample
	for i, r := range rows {
		if err := r.check(i, r.reference(), r.entropy()); err != nil {
			return nil, err
		}
		ratio, advantage, live := sequenceRatio(r)
		if !live {
			continue
		}
		// One row each: neither can fail, since both were checked.
		var entropy Entropy
		var kl KL
		if err := entropy.Add(r); err != nil {
			return nil, err
		}
		if err := kl.Add(r); err != nil {
			return nil, err
		}
		out = append(
			out, Sample{Advantage: advantage, Ratio: ratio, Entropy: entropy.Report().TokenMean, KL: kl.Report().K3},
		)
	}
	return out, nil
}

// sequenceClamp bounds the mean log-ratio of a row, upwards, as the losses do.
const sequenceClamp = 10

// checkPolicyRows reports the first row without usable log-probabilities and advantages.
func checkPolicyRows(rows []Row) error {
	for i, r := range rows {
		if err := r.check(i, r.logProbs(), r.old(), r.advantages()); err != nil {
			return err
		}
	}
	return nil
}

// sequenceRatio is exp of the mean log-ratio, with the mean advantage; a dead row has neither.
func sequenceRatio(r Row) (ratio, advantage float64, live bool) {
	logs, advantages, n := exact.Sum{}, exact.Sum{}, 0
	for t, m := range r.Mask {
		if m == 1 {
			n++
			logs.Add(r.LogProbs[t] - r.Old[t])
			advantages.Add(r.Advantages[t])
		}
	}
	if n == 0 {
		return 0, 0, false
	}
	return math.Exp(min(meanOf(logs.Value(), n), sequenceClamp)), meanOf(advantages.Value(), n), true
}
