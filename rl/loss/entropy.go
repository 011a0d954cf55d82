package loss

import (
	"errors"
	"fmt"
	"math"

	"github.com/ropewalk/ropewalk/rl/choice"
)

// The entropy of the next-token distribution over the whole vocabulary, in nats:
//
//	H = logsumexp(z) − Σ p·z,  z = logits/temperature,  dH/dlogit_j = −p_j·(ln p_j + H)/temperature
//
// As a bonus it enters the loss as −c_H·agg(H), so the cotangent of a token's entropy is −c_H times
// its weight. The engine continues from there to the logits. Rows of count N enter N times.

var entropyTerm = Term{Choice: choice.Choice{
	Name: "entropy", Doc: "− c·agg(H) in the loss", Source: "A3C (Mnih et al. 2016)",
	Field: "coefficient c of − c·agg(H) in the loss; 0 = off", Settings: Entropy{},
	Needs: []choice.Need{choice.NeedCurrentEntropies},
}}

// Entropy is the entropy bonus. It needs Row.Entropies.
type Entropy struct {
	Coefficient float64 `json:"entropy" min:"-1000" max:"1000" quiet:"true"` // c_H ≥ 0; with 0 it is only a statistic
}

// Add puts the bonus into the objective.
func (e Entropy) Add(o *Objective, _ Step) { o.Entropy = &e }

// Name is "entropy".
func (Entropy) Name() string { return "entropy" }

// Validate reports the first bad field.
func (e Entropy) Validate() error { return checkNotNegative("entropy coefficient", e.Coefficient) }

// LogitEntropy returns the entropy of softmax(logits/temperature). probs and gradient, where not nil
// and as long as logits, receive the probabilities and dH/dlogits. A logit of −Inf has probability 0.
func LogitEntropy[T Float](logits []T, temperature float64, probs, gradient []float64) (float64, error) {
	if !(temperature > 0) || !finite(temperature) {
		return 0, fmt.Errorf("entropy of logits: temperature must be finite and > 0, got %g", temperature)
	}
	top := math.Inf(-1)
	for j, v := range logits {
		if z := float64(v); math.IsNaN(z) || math.IsInf(z, 1) {
			return 0, fmt.Errorf("entropy of logits: logit %d is %g", j, z)
		}
		top = math.Max(top, float64(v)/temperature)
	}
	if math.IsInf(top, -1) {
		return 0, errors.New("entropy of logits: no finite logit")
	}
	norm, weighted := 0.0, 0.0
	for _, v := range logits {
		z := float64(v)/temperature - top
		if p := math.Exp(z); p > 0 { // else z may be −Inf
			norm += p
			weighted += p * z
		}
	}
	lse := math.Log(norm)
	entropy := math.Max(0, lse-weighted/norm)
	for j, v := range logits {
		logp := float64(v)/temperature - top - lse
		p := math.Exp(logp)
		if probs != nil {
			probs[j] = p
		}
		if gradient != nil {
			gradient[j] = 0
			if p > 0 {
				gradient[j] = -p * (logp + entropy) / temperature
			}
		}
	}
	return entropy, nil
}
