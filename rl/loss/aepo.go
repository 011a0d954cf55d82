package loss

import "github.com/ropewalk/ropewalk/rl/choice"

// The gradient-preserving clip of AEPO (Dong et al. 2025, eqs. 8, 9 and 14): the upper bound becomes
// (1+ε_high)·r/sg(r), so that a rising token keeps the gradient of the bound; the lower bound stays
// a constant.
//
//	A > 0, r > 1+ε_high:  ℓ = −(1+ε_high)·A·r/sg(r)
//	A < 0, r < 1−ε_low:   ℓ = −(1−ε_low)·A
//	else:                 ℓ = −A·r
//
// The paper mentions high-entropy tokens, but its equations have no gate on entropy, and this code has none
// either. Eq. 9 prints 1−ε_h in the second case; eq. 14 and Algorithm 2 print ε_l, which is used here.
// The released code has a dual clip with C = 3, the paper has none: see Dual.

var aepoClip = Declaration{
	Choice: choice.Choice{
		Name: "aepo_clip", Doc: "keeps the gradient above the upper bound alone", Source: "AEPO eqs 8, 9, 14",
		Settings: AEPOClip{Low: 0.2, High: 0.2},
		Rules:    []choice.Rule{dualClipAboveOne},
	},
}

// AEPOClip is PPO's clip whose upper bound keeps its gradient.
type AEPOClip struct {
	Low  float64 `json:"clip_low"`
	High float64 `json:"clip_high"`
	Dual float64 `json:"dual_clip"` // C > 1, or 0 for none (the paper)
}

// Name is "aepo_clip".
func (p AEPOClip) Name() string { return "aepo_clip" }

// Validate reports the first bad field.
func (p AEPOClip) Validate() error { return PPOClip(p).Validate() }

// Inputs asks for the importance ratios.
func (p AEPOClip) Inputs() Inputs { return Ratios }

// Bounds returns the clip range.
func (p AEPOClip) Bounds() Bounds { return PPOClip(p).Bounds() }

// Evaluate writes the block's losses and coefficients.
func (p AEPOClip) Evaluate(b *Block) {
	w := clipped(p.Low, p.High, p.Dual)
	w.positive.coefHi = w.positive.lossHi
	w.evaluate(b)
}
