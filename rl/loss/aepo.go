package loss

// The gradient-preserving clip of AEPO (Dong et al. 2025, eqs. 8, 9 and 14): the upper bound becomes
// (1+ε_high)·r/sg(r), so that a rising token keeps the gradient of the bound; the lower bound stays
// a constant.
//
//	A > 0, r > 1+ε_high:  ℓ = −(1+ε_high)·A·r/sg(r)
//	A < 0, r < 1−ε_low:   ℓ = −(1−ε_low)·A
//	else:                 ℓ = −A·r
//
// The paper speaks of high-entropy tokens, but its equations have no gate on entropy: neither has
// this. Eq. 9 prints 1−ε_h in the second case; eq. 14 and Algorithm 2 have ε_l, which is used here.
// The released code keeps the dual clip C = 3, the paper has none: Dual.

// AEPOClip is PPO's clip whose upper bound keeps its gradient.
type AEPOClip struct {
	Low, High float64
	Dual      float64 // C > 1, or 0 for none (the paper)
}

// Name is "aepo_clip".
func (p AEPOClip) Name() string { return "aepo_clip" }

// Validate reports the first bad field.
func (p AEPOClip) Validate() error { return PPOClip(p).Validate() }

// Inputs are the ratios.
func (p AEPOClip) Inputs() Inputs { return Ratios }

// Bounds are the clip's.
func (p AEPOClip) Bounds() Bounds { return PPOClip(p).Bounds() }

// Evaluate writes the block's losses and coefficients.
func (p AEPOClip) Evaluate(b *Block) {
	w := clipped(p.Low, p.High, p.Dual)
	w.positive.coefHi = w.positive.lossHi
	w.evaluate(b)
}
