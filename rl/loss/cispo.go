package loss

import "math"

// CISPO (MiniMax 2025, eq. 4): REINFORCE whose importance weight is clipped and not differentiated,
//
//	ℓ = −sg(clip(r, 1−ε_low, 1+ε_high))·A·logp
//
// so no token loses its gradient. ε_low = 1 leaves the weight without a lower bound. The value
// depends on logp itself and compares with no other loss's. Mask is an addition of Trinity-RFT: it
// drops the tokens that PPO would have clipped. Departure from the convention of the other losses:
// beyond the clamp of the log-ratio the coefficient stays, for no gradient runs through r.

// CISPO is the clipped importance weight times −A·logp.
type CISPO struct {
	Low, High float64
	Mask      bool // drop A > 0 above and A < 0 below the bounds
}

// Name is "cispo".
func (p CISPO) Name() string { return "cispo" }

// Validate reports the first bad field. An unbounded upper side is High = +Inf.
func (p CISPO) Validate() error {
	if math.IsInf(p.High, 1) {
		return checkClip(p.Low, 0)
	}
	return checkClip(p.Low, p.High)
}

// Inputs are the ratios.
func (p CISPO) Inputs() Inputs { return Ratios }

// Bounds are the clip's.
func (p CISPO) Bounds() Bounds { return Bounds{Low: 1 - p.Low, High: 1 + p.High} }

// Evaluate writes the block's losses and coefficients.
func (p CISPO) Evaluate(b *Block) {
	low, high := 1-p.Low, min(1+p.High, unbounded)
	both := piece{lo: low, hi: high, lossLo: low, coefLo: low, lossHi: high, coefHi: high}
	w := window{positive: both, negative: both}
	if p.Mask {
		w.positive.coefHi, w.negative.coefLo = 0, 0
	}
	windowLoop(&w, b.Ratio, b.Advantages, b.Loss, b.Coef)
	mulLoop(b.Loss, b.Coef, b.LogProbs)
}
