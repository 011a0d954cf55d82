package loss_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ropewalk/ropewalk/internal/testing/losstest"
	"github.com/ropewalk/ropewalk/rl/loss"
)

// The sampler's log-probabilities are in no ratio: they decide no clip and no mask, and multiply a token's loss and
// coefficient by the weight of truncated importance sampling alone. The ratios' denominator is Old.
func TestDenominators(t *testing.T) {
	for _, c := range losstest.Cases() {
		o := c.Objective
		if o.Policy == nil || o.Policy.Name() == "behaviour_cloning" || o.KL != nil || o.Entropy != nil {
			continue
		}
		c.Objective.SequenceMask = &loss.SequenceMask{Delta: 0.01}
		t.Run(c.Name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(5, 15))
			dropped := 0
			for range 40 {
				b := random(rng, 5)
				c.Objective.TIS = nil
				plain := evaluateCase(t, c, b)
				c.Objective.TIS = &loss.TIS{Cap: 2}
				for i, r := range b.Rows {
					b.Rows[i].Rollout = slices.Clone(r.Old)
					for k := range r.Old {
						b.Rows[i].Rollout[k] -= math.Log(1.5)
					}
				}
				weighed := evaluateCase(t, c, b)
				for i, r := range b.Rows {
					kept := false
					for k := range r.Mask {
						want := 1.5 * plain.Cotangents[i][k]
						if !closeTo(weighed.Cotangents[i][k], want, 1e-12) {
							t.Fatalf("cotangent %g, want %g", weighed.Cotangents[i][k], want)
						}
						kept = kept || want != 0
					}
					if !kept && r.Tokens() > 0 {
						dropped++
					}
				}
				if !closeTo(weighed.Loss, 1.5*plain.Loss, 1e-12) {
					t.Fatalf("loss %g, want %g", weighed.Loss, 1.5*plain.Loss)
				}
			}
			if dropped == 0 {
				t.Error("no row was left out")
			}
		})
	}
}

// GSPO's ratio and the sequence mask are those of Old: with Old equal to the new log-probabilities the ratio is 1 and
// every row stays, whatever the sampler said.
func TestOldIsTheDenominator(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 16))
	for _, policy := range []loss.Surrogate{loss.GSPO{Low: 0.1, High: 0.1}, loss.GSPOToken{Low: 0.1, High: 0.1}} {
		c := losstest.Case{Name: policy.Name(), Objective: loss.Objective{Policy: policy,
			Aggregation: loss.Aggregation{Mode: loss.TokenSum}, SequenceMask: &loss.SequenceMask{},
			TIS: &loss.TIS{Cap: 2}}}
		b := random(rng, 6)
		want := 0.0
		for i, r := range b.Rows {
			b.Rows[i].LogProbs, b.Rows[i].Rollout = slices.Clone(r.Old), slices.Clone(r.Old)
			mean := 0.0
			for k, m := range r.Mask {
				b.Rows[i].Rollout[k] -= 0.3
				mean += float64(m) * r.Advantages[k] / float64(max(1, r.Tokens()))
			}
			for k, m := range r.Mask {
				a := r.Advantages[k]
				if policy.Name() == "gspo" {
					a = mean
				}
				want -= float64(m) * a * math.Exp(0.3)
			}
		}
		if got := evaluateCase(t, c, b); !closeTo(got.Loss, want, 1e-9) {
			t.Errorf("%s: loss %g, want %g", policy.Name(), got.Loss, want)
		}
	}
}
