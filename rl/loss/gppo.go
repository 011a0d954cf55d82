package loss

import (
	"errors"

	"github.com/ropewalk/ropewalk/rl/choice"
)

// Gradient-preserving clipping: GPPO (Su et al. 2025, Klear-Reasoner) and its weighted form CE-GPPO.
// The value is PPO's clipped value times β. The gradient of a clipped token does not vanish; it is the gradient
// of the bound:
//
//	A < 0, r < 1−ε_low:   ℓ = −β1·(1−ε_low)·A·r/sg(r)
//	A > 0, r > 1+ε_high:  ℓ = −β2·(1+ε_high)·A·r/sg(r)
//	else:                 ℓ = −A·r
//
// Beyond the clamp of the log-ratio the coefficient is 0, as in every loss whose gradient runs
// through r.

var gppo = Declaration{
	Choice: choice.Choice{
		Name: "gppo", Doc: "PPO's clip whose clipped tokens keep a bounded gradient", Source: "GPPO (Su et al. 2025)",
		Settings: GPPO{Low: 0.2, High: 0.2},
		Example:  GPPO{Low: 0.2, High: 0.28},
	},
}

var ceGPPO = Declaration{
	Choice: choice.Choice{
		Name: "ce_gppo", Doc: "gppo with a share of the kept gradient for each side",
		Source:   "CE-GPPO (Su et al. 2025)",
		Settings: CEGPPO{Low: 0.2, High: 0.2, Beta1: 0.5, Beta2: 1},
		Example:  CEGPPO{Low: 0.2, High: 0.28, Beta1: 0.75, Beta2: 1},
	},
}

// GPPO is the gradient-preserving clip, which is CEGPPO with β1 = β2 = 1.
type GPPO struct {
	Low  float64 `json:"clip_low"`
	High float64 `json:"clip_high"`
}

// Name is "gppo".
func (p GPPO) Name() string { return "gppo" }

// Validate reports the first bad field.
func (p GPPO) Validate() error { return checkClip(p.Low, p.High) }

// Inputs asks for the importance ratios.
func (p GPPO) Inputs() Inputs { return Ratios }

// Bounds returns the clip range.
func (p GPPO) Bounds() Bounds { return Bounds{Low: 1 - p.Low, High: 1 + p.High} }

// Evaluate writes the block's losses and coefficients.
func (p GPPO) Evaluate(b *Block) { CEGPPO{Low: p.Low, High: p.High, Beta1: 1, Beta2: 1}.Evaluate(b) }

// CEGPPO weighs the preserved gradients by Beta1 below and Beta2 above.
type CEGPPO struct {
	Low   float64 `json:"clip_low"`
	High  float64 `json:"clip_high"`
	Beta1 float64 `json:"beta1" min:"0" max:"1000" doc:"share of the gradient kept below the clip (negative advantages)"`
	Beta2 float64 `json:"beta2" min:"0" max:"1000" doc:"share of the gradient kept above the clip (positive advantages)"`
}

// Name is "ce_gppo".
func (p CEGPPO) Name() string { return "ce_gppo" }

// Validate reports the first bad field.
func (p CEGPPO) Validate() error {
	return errors.Join(checkClip(p.Low, p.High), choice.Check("", p))
}

// Inputs asks for the importance ratios.
func (p CEGPPO) Inputs() Inputs { return Ratios }

// Bounds returns the clip range.
func (p CEGPPO) Bounds() Bounds { return Bounds{Low: 1 - p.Low, High: 1 + p.High} }

// Evaluate writes the block's losses and coefficients.
func (p CEGPPO) Evaluate(b *Block) {
	w := clipped(p.Low, p.High, 0)
	below, above := p.Beta1*(1-p.Low), p.Beta2*(1+p.High)
	w.negative.lossLo, w.negative.coefLo = below, below
	w.positive.lossHi, w.positive.coefHi = above, above
	w.evaluate(b)
}
