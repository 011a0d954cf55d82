package loss

// Gradient-preserving clipping: GPPO (Su et al. 2025, Klear-Reasoner) and its weighted form CE-GPPO.
// The value is PPO's clipped one, times β; the gradient of a clipped token does not vanish, it is
// that of the bound:
//
//	A < 0, r < 1−ε_low:   ℓ = −β1·(1−ε_low)·A·r/sg(r)
//	A > 0, r > 1+ε_high:  ℓ = −β2·(1+ε_high)·A·r/sg(r)
//	else:                 ℓ = −A·r
//
// Beyond the clamp of the log-ratio the coefficient is 0, as in every loss whose gradient runs
// through r.

// GPPO is the gradient-preserving clip. β = 1 is plain GPPO.
type GPPO struct{ Low, High float64 }

// Name is "gppo".
func (p GPPO) Name() string { return "gppo" }

// Validate reports the first bad field.
func (p GPPO) Validate() error { return checkClip(p.Low, p.High) }

// Inputs are the ratios.
func (p GPPO) Inputs() Inputs { return Ratios }

// Bounds are the clip's.
func (p GPPO) Bounds() Bounds { return Bounds{Low: 1 - p.Low, High: 1 + p.High} }

// Evaluate writes the block's losses and coefficients.
func (p GPPO) Evaluate(b *Block) { CEGPPO{Low: p.Low, High: p.High, Beta1: 1, Beta2: 1}.Evaluate(b) }

// CEGPPO weighs the preserved gradients by Beta1 below and Beta2 above.
type CEGPPO struct{ Low, High, Beta1, Beta2 float64 }

// Name is "ce_gppo".
func (p CEGPPO) Name() string { return "ce_gppo" }

// Validate reports the first bad field.
func (p CEGPPO) Validate() error {
	if err := checkClip(p.Low, p.High); err != nil {
		return err
	}
	if err := checkNotNegative("beta1", p.Beta1); err != nil {
		return err
	}
	return checkNotNegative("beta2", p.Beta2)
}

// Inputs are the ratios.
func (p CEGPPO) Inputs() Inputs { return Ratios }

// Bounds are the clip's.
func (p CEGPPO) Bounds() Bounds { return Bounds{Low: 1 - p.Low, High: 1 + p.High} }

// Evaluate writes the block's losses and coefficients.
func (p CEGPPO) Evaluate(b *Block) {
	w := clipped(p.Low, p.High, 0)
	below, above := p.Beta1*(1-p.Low), p.Beta2*(1+p.High)
	w.negative.lossLo, w.negative.coefLo = below, below
	w.positive.lossHi, w.positive.coefHi = above, above
	w.evaluate(b)
}
