package loss

import (
	"fmt"
	"math"
)

// Truncated importance sampling between the engine that generated and the engine that trains (Yao et
// al. 2025): every token's policy loss is multiplied by the constant
//
//	w_t = min(exp(clamp(old_logp − rollout_logp, ±20)), cap)
//
// No gradient runs through it.

// TIS weighs tokens by how much likelier the trainer holds them than the engine that sampled them.
type TIS struct{ Cap float64 }

// Validate reports the first bad field.
func (w TIS) Validate() error {
	if !(w.Cap > 0) || math.IsInf(w.Cap, 0) {
		return fmt.Errorf("tis cap must be finite and > 0, got %g", w.Cap)
	}
	return nil
}

// Weight is the weight of one token.
func (w TIS) Weight(old, rollout float64) float64 {
	return math.Min(math.Exp(clamp(old-rollout, LogRatioClamp)), w.Cap)
}
