package loss

import (
	"fmt"
	"math"

	"github.com/ropewalk/ropewalk/rl/choice"
)

// PPO's clipped surrogate (Schulman et al. 2017, eq. 7), as GRPO uses it per token:
//
//	ℓ = max(−A·r, −A·clip(r, 1−ε_low, 1+ε_high)),  and for A < 0 at most −A·C
//
// ε_high > ε_low is clip-higher (Yu et al. 2025, DAPO); the bound C is the dual clip (Ye et al.
// 2020). Departure: the log-ratio is clamped to ±20 before exp.

var ppoClip = Declaration{
	Choice: choice.Choice{
		Name: "ppo_clip", Doc: "the clipped surrogate of PPO, with clip-higher and dual clip",
		Source:   "PPO (Schulman et al. 2017); DAPO (Yu et al. 2025); rStar2 eq 1",
		Settings: PPOClip{Low: 0.2, High: 0.28},
		Rules:    []choice.Rule{dualClipAboveOne},
		Example:  PPOClip{Low: 0.2, High: 0.28, Dual: 3},
	},
}

// PPOClip is max(−A·r, −A·clip(r, 1−Low, 1+High)), bounded by −A·Dual where A < 0.
type PPOClip struct {
	// ε of each side; clip-higher is High > Low.
	Low  float64 `json:"clip_low" above:"0" max:"1" doc:"the importance ratio is clipped below 1 − clip_low"`
	High float64 `json:"clip_high" above:"0" max:"100" doc:"the importance ratio is clipped above 1 + clip_high"`
	// C > 1, or 0 for none.
	Dual float64 `json:"dual_clip" min:"0" max:"1000" doc:"bound on the ratio for negative advantages, > 1; 0 = off"`
}

// dualClipAboveOne refuses a dual clip that would bound ratios inside the clip range.
var dualClipAboveOne = choice.Rule{
	Param: "dual_clip", Doc: "0 (off) or > 1",
	Fault: func(p choice.Params) string {
		if c, _ := p["dual_clip"].(float64); c != 0 && c <= 1 {
			return fmt.Sprintf("must be 0 (off) or > 1, got %.9g", c)
		}
		return ""
	},
}

// Name is "ppo_clip".
func (p PPOClip) Name() string { return "ppo_clip" }

// Validate reports the first bad field.
func (p PPOClip) Validate() error {
	if err := checkClip(p.Low, p.High); err != nil {
		return err
	}
	return checkDual(p.Dual)
}

// Inputs asks for the importance ratios.
func (p PPOClip) Inputs() Inputs { return Ratios }

// Bounds returns the clip range.
func (p PPOClip) Bounds() Bounds { return Bounds{Low: 1 - p.Low, High: 1 + p.High, Dual: p.Dual} }

// Evaluate writes the block's losses and coefficients.
func (p PPOClip) Evaluate(b *Block) {
	w := clipped(p.Low, p.High, p.Dual)
	w.evaluate(b)
}

func checkClip(low, high float64) error {
	switch {
	case !(low >= 0 && low <= 1):
		return fmt.Errorf("clip_low must be of [0, 1], got %g", low)
	case !(high >= 0) || math.IsInf(high, 0):
		return fmt.Errorf("clip_high must be finite and ≥ 0, got %g", high)
	}
	return nil
}

func checkDual(dual float64) error {
	if dual != 0 && (!(dual > 1) || math.IsInf(dual, 0)) {
		return fmt.Errorf("dual_clip must be 0 (off) or > 1, got %g", dual)
	}
	return nil
}

// checkNotNegative reports a setting that is not a finite number ≥ 0.
func checkNotNegative(field string, v float64) error {
	if !(v >= 0) || math.IsInf(v, 0) {
		return fmt.Errorf("%s must be finite and ≥ 0, got %g", field, v)
	}
	return nil
}
