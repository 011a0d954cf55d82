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
