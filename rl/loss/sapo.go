package loss

import (
	"fmt"

	"github.com/ropewalk/ropewalk/rl/choice"
)

// SAPO (Gao et al. 2025, soft adaptive policy optimisation): a smooth gate instead of a clip,
//
//	ℓ = −(4/τ)·σ(τ(r−1))·A,  dℓ/dlogp = −A·4σ(1−σ)·r,  τ = τ⁺ where A > 0, else τ⁻
//
// At r = 1 the coefficient is −A for any τ. Departure: τ follows the sign of each token's advantage. Released code
// takes the sign of the row's mean, which is the same if a row has one advantage.

var sapo = Declaration{
	Choice: choice.Choice{
		Name: "sapo", Doc: "a sigmoid gate on the ratio in the place of the clip",
		Source:   "SAPO (2025); ARLArena Table 1",
		Settings: SAPO{TauPositive: 1, TauNegative: 1.05},
	},
	Brief: func(s Surrogate) string {
		p := s.(SAPO)
		return fmt.Sprintf("τ %v/%v", p.TauPositive, p.TauNegative)
	},
}

// SAPO is the sigmoid-gated surrogate.
type SAPO struct {
	TauPositive float64 `json:"tau_positive" above:"0" max:"1000" doc:"steepness of the soft gate where the advantage is positive"`
	TauNegative float64 `json:"tau_negative" above:"0" max:"1000" doc:"steepness of the soft gate elsewhere"`
}

// Name is "sapo".
func (p SAPO) Name() string { return "sapo" }

// Validate reports the first bad field.
func (p SAPO) Validate() error { return choice.Check("", p) }

// Inputs asks for the importance ratios.
func (p SAPO) Inputs() Inputs { return Ratios }

// Bounds returns none: ratios have no bounds.
func (p SAPO) Bounds() Bounds { return Bounds{} }

// Evaluate writes the block's losses and coefficients.
func (p SAPO) Evaluate(b *Block) {
	sigmoidLoop(p, b.Ratio, b.Advantages, b.scratch, b.Loss, b.Coef)
	b.dropClamped()
}

// sigmoidLoop is SAPO's gate; scratch is overwritten.
func sigmoidLoop(p SAPO, ratio, advantages, scratch, loss, coef []float64) {
	if wide != nil {
		wide.sigmoid(p, ratio, advantages, loss, coef)
		return
	}
	gatePos, gateNeg := 4/p.TauPositive, 4/p.TauNegative
	for t, r := range ratio {
		tau := p.TauPositive
		if advantages[t] <= 0 {
			tau = p.TauNegative
		}
		scratch[t] = tau * (1 - r)
	}
	expLoop(scratch, scratch, expLimit)
	for t, r := range ratio {
		a, e := advantages[t], scratch[t]
		gate := gatePos
		if a <= 0 {
			gate = gateNeg
		}
		sigma := 1 / (1 + e)
		loss[t] = -a * gate * sigma
		coef[t] = -a * (4 * sigma * (e * sigma) * r)
	}
}
