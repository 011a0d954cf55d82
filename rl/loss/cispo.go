package loss

import (
	"math"

	"github.com/ropewalk/ropewalk/rl/choice"
)

// CISPO (MiniMax 2025, eq. 4): REINFORCE whose importance weight is clipped and not differentiated,
//
//	ℓ = −sg(clip(r, 1−ε_low, 1+ε_high))·A·logp
//
// so no token loses its gradient. With ε_low = 1 the weight has no lower bound. The value depends on logp
// itself, so it cannot be compared with that of another loss. Mask is an addition of Trinity-RFT: it
// drops the tokens that PPO would have clipped. Departure from the other losses: the coefficient does not
// become 0 beyond the clamp of the log-ratio, for no gradient runs through r.

var cispo = Declaration{
	Choice: choice.Choice{
		Name:     "cispo",
		Doc:      "the clipped ratio as a constant weight of the log-probability: no token loses its gradient",
		Source:   "MiniMax-M1 (2025); ARLArena S8",
		Settings: CISPO{Low: 1, High: 0.2},
	},
}

// CISPO is the clipped importance weight times −A·logp.
type CISPO struct {
	Low  float64 `json:"clip_low"`
	High float64 `json:"clip_high"`
	// Mask drops tokens with A > 0 above the bounds and with A < 0 below them.
	Mask bool `json:"mask" doc:"also drop the tokens that PPO's clip would drop"`
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

// Inputs asks for the importance ratios.
func (p CISPO) Inputs() Inputs { return Ratios }

// Bounds returns the clip range.
func (p CISPO) Bounds() Bounds { return Bounds{Low: 1 - p.Low, High: 1 + p.High} }

// Evaluate writes the block's losses and coefficients.
func (p CISPO) Evaluate(b *Block) {
	low, high := 1-p.Low, min(1+p.High, unbounded)
	both := signedLoss{lo: low, hi: high, lossLo: low, coefLo: low, lossHi: high, coefHi: high}
	w := window{positive: both, negative: both}
	if p.Mask {
		w.positive.coefHi, w.negative.coefLo = 0, 0
	}
	windowLoop(&w, b.Ratio, b.Advantages, b.Loss, b.Coef)
	mulLoop(b.Loss, b.Coef, b.LogProbs)
}
