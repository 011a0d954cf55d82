package diagnose

// Divergences of a step, as means over the tokens under the mask, with Δ = logp − ref:
//
//	KL(current ‖ reference)  k1 = Δ, k3 = e^(−Δ) + Δ − 1   (Schulman 2020)
//	                         weighted e^(logp − old)·k3, over tokens that an old policy has drawn
//	off-policy KL            old − logp
//
// k1 is unbiased and may be negative; k3 is never negative. Both expect tokens of the current policy. The weighted k3
// is unbiased for tokens of the old policy, whose probabilities it divides out. Departures: k3 clamps −Δ to ±20 and its
// value to 10, as the loss of that name does, and the weight is at most e^20. The paper also plots the gradient norm,
// which the update itself reports.

import (
	"math"

	"github.com/ropewalk/ropewalk/rl/internal/exact"
	"github.com/ropewalk/ropewalk/rl/loss"
)

// KL gathers the divergences of a step's tokens.
type KL struct {
	reference, old, both    int // tokens that have each
	k1, k3, drift, weighted exact.Sum
}

// KLReport holds the means, in nats a token; a mean over no tokens is 0.
type KLReport struct {
	ReferenceTokens int
	K1, K3          float64 // of KL(current ‖ reference)
	WeightedTokens  int     // that have a reference and an old policy
	Weighted        float64 // k3 over tokens of the old policy
	OldTokens       int
	OffPolicy       float64 // mean(old − logp), the k1 estimate of KL(old ‖ current)
}

// Add adds rows by Mask and LogProbs, and by Reference and Old where a row has them. If one row is
// refused, none is added.
func (k *KL) Add(rows ...Row) error {
	for i, r := range rows {
		columns := []column{r.logProbs()}
		if r.Reference != nil {
			columns = append(columns, r.reference())
		}
		if r.Old != nil {
			columns = append(columns, r.old())
		}
		if err := r.check(i, columns...); err != nil {
			return err
		}
	}
	for _, r := range rows {
		for t, m := range r.Mask {
			if m == 0 {
				continue
			}
			if err := k.add(r, t); err != nil {
				return err
			}
		}
	}
	return nil
}

func (k *KL) add(r Row, t int) error {
	if r.Reference != nil {
		k3, err := k3(r.LogProbs[t], r.Reference[t])
		if err != nil {
			return err
		}
		k.reference++
		k.k1.Add(r.LogProbs[t] - r.Reference[t])
		k.k3.Add(k3)
		if r.Old != nil {
			k.both++
			k.weighted.Add(math.Exp(min(r.LogProbs[t]-r.Old[t], loss.LogRatioClamp)) * k3)
		}
	}
	if r.Old != nil {
		k.old++
		k.drift.Add(r.Old[t] - r.LogProbs[t])
	}
	return nil
}

// k3 is the value of the estimator of that name.
func k3(logp, reference float64) (float64, error) {
	value, _, err := loss.K3.Estimate(logp, reference)
	return value, err
}

// Report returns the means.
func (k *KL) Report() KLReport {
	return KLReport{
		ReferenceTokens: k.reference,
		K1:              meanOf(k.k1.Value(), k.reference),
		K3:              meanOf(k.k3.Value(), k.reference),
		WeightedTokens:  k.both,
		Weighted:        meanOf(k.weighted.Value(), k.both),
		OldTokens:       k.old,
		OffPolicy:       meanOf(k.drift.Value(), k.old),
	}
}
