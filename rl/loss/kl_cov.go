package loss

import (
	"fmt"
	"math"
)

// KL-Cov (Cui et al. 2025, eqs. 12–13): the tokens of greatest covariance (see Clip-Cov) carry a
// penalty on their drift instead of losing their gradient,
//
//	ℓ = −A·r, and for the max(1, ⌊ratio·N⌋) greatest:  ℓ = −A·r + k·|l|
//
// There is no clip. Ties go to the row that comes first in canonical order.

// KLCov penalises the drift of the tokens of greatest covariance.
type KLCov struct {
	Coefficient float64 // k ≥ 0
	Rule        CovarianceRule
}

// Name is "kl_cov".
func (p KLCov) Name() string { return "kl_cov" }

// Validate reports the first bad field. The rule's bounds are not read.
func (p KLCov) Validate() error {
	if err := checkNotNegative("kl_cov coefficient", p.Coefficient); err != nil {
		return err
	}
	if err := p.Rule.validate(); err != nil {
		return fmt.Errorf("kl_cov: %w", err)
	}
	return nil
}

// Inputs are the ratios and the marks.
func (p KLCov) Inputs() Inputs { return Ratios | Marked }

// Bounds are none.
func (p KLCov) Bounds() Bounds { return Bounds{} }

// Evaluate writes the block's losses and coefficients.
func (p KLCov) Evaluate(b *Block) {
	free := piece{hi: unbounded}
	w := window{positive: free, negative: free}
	windowLoop(&w, b.Ratio, b.Advantages, b.Loss, b.Coef)
	for t, mark := range b.Marks {
		if l := b.LogRatio[t]; mark != 0 && l != 0 {
			b.Loss[t] += p.Coefficient * math.Abs(clamp(l, LogRatioClamp))
			b.Coef[t] += math.Copysign(p.Coefficient, l)
		}
	}
	b.dropClamped()
}
