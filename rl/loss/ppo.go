package loss

import (
	"fmt"
	"math"
)

// PPO's clipped surrogate (Schulman et al. 2017, eq. 7), as GRPO uses it per token:
//
//	ℓ = max(−A·r, −A·clip(r, 1−ε_low, 1+ε_high)),  and for A < 0 at most −A·C
//
// ε_high > ε_low is clip-higher (Yu et al. 2025, DAPO); the bound C is the dual clip (Ye et al.
// 2020). Departure: the log-ratio is clamped to ±20 before exp.

// PPOClip is max(−A·r, −A·clip(r, 1−Low, 1+High)), bounded by −A·Dual where A < 0.
type PPOClip struct {
	Low, High float64 // ε of each side; clip-higher is High > Low
	Dual      float64 // C > 1, or 0 for none
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

// Inputs are the ratios.
func (p PPOClip) Inputs() Inputs { return Ratios }

// Bounds are the clip's.
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
