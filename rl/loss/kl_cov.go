package loss

import (
	"fmt"
	"math"

	"github.com/ropewalk/ropewalk/rl/choice"
)

// KL-Cov (Cui et al. 2025, eqs. 12–13): the tokens of greatest covariance (see Clip-Cov) carry a
// penalty on their drift instead of losing their gradient,
//
//	ℓ = −A·r, and for the max(1, ⌊ratio·N⌋) greatest:  ℓ = −A·r + k·|l|
//
// There is no clip. On ties, the row that comes first in canonical order wins. Departure: the scope is the
// mini-batch, as for Clip-Cov.

var klCov = Declaration{
	Choice: choice.Choice{
		Name: "kl_cov", Doc: "the plain ratio, with a penalty on the most covariant tokens",
		Source:   "KL-Cov (Cui et al. 2025)",
		Settings: klCovSettings{Coefficient: 1, Ratio: 0.002},
		Needs:    []choice.Need{choice.NeedMinibatch},
		Example:  klCovSettings{Coefficient: 1, Ratio: 0.02},
	},
	Brief: func(s Surrogate) string { return fmt.Sprintf("%v of the tokens", s.(KLCov).Rule.Ratio) },
}

// klCovSettings are the parameters of KL-Cov in a recipe.
type klCovSettings struct {
	Coefficient float64 `json:"cov_coefficient" min:"0" max:"1000000" doc:"weight of |log-ratio| on the penalised tokens"`
	Ratio       float64 `json:"cov_ratio"`
}

// Surrogate makes the loss. Covariances are centred over the mini-batch.
func (k klCovSettings) Surrogate() Surrogate {
	return KLCov{Coefficient: k.Coefficient, Rule: CovarianceRule{Ratio: k.Ratio}}
}

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

// Inputs asks for the importance ratios and the marks.
func (p KLCov) Inputs() Inputs { return Ratios | Marked }

// Bounds returns none: ratios have no bounds.
func (p KLCov) Bounds() Bounds { return Bounds{} }

// Evaluate writes the block's losses and coefficients.
func (p KLCov) Evaluate(b *Block) {
	free := signedLoss{hi: unbounded}
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
