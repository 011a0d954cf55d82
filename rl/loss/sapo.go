package loss

import "fmt"

// SAPO (Gao et al. 2025, soft adaptive policy optimisation): a smooth gate instead of a clip,
//
//	ℓ = −(4/τ)·σ(τ(r−1))·A,  dℓ/dlogp = −A·4σ(1−σ)·r,  τ = τ⁺ where A > 0, else τ⁻
//
// At r = 1 the coefficient is −A for any τ. τ follows each token's own sign; released code takes the
// sign of the row's mean, which is the same where a row has one advantage.

// SAPO is the sigmoid-gated surrogate.
type SAPO struct{ TauPositive, TauNegative float64 }

// Name is "sapo".
func (p SAPO) Name() string { return "sapo" }

// Validate reports the first bad field.
func (p SAPO) Validate() error {
	if !(p.TauPositive > 0) || !finite(p.TauPositive) {
		return fmt.Errorf("tau_positive must be finite and > 0, got %g", p.TauPositive)
	}
	if !(p.TauNegative > 0) || !finite(p.TauNegative) {
		return fmt.Errorf("tau_negative must be finite and > 0, got %g", p.TauNegative)
	}
	return nil
}

// Inputs are the ratios.
func (p SAPO) Inputs() Inputs { return Ratios }

// Bounds are none.
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
