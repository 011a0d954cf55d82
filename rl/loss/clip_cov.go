package loss

import "errors"

// Clip-Cov (Cui et al. 2025, "The Entropy Mechanism of RL", eqs. 10–11; SPEAR eq. 16): of the tokens
// whose advantage and log-probability covary strongly, a few are drawn and lose their gradient, for
// they drive the entropy down. c_t = (A_t − Ā)(logp_t − mean logp). A token is a candidate if PPO
// did not clip it and lb < c_t < ub; min(budget, candidates) of them are drawn without replacement.
// A drawn token's loss is 0, and it stays in the denominator. Departures: the scope is the mini-batch
// instead of the micro-batch, and the log-ratio's clamp of ±20 stays. No dual clip, as released.

// ClipCov is PPO's clip without the drawn tokens.
type ClipCov struct {
	Low, High float64
	Rule      CovarianceRule
}

// Name is "clip_cov".
func (p ClipCov) Name() string { return "clip_cov" }

// Validate reports the first bad field.
func (p ClipCov) Validate() error {
	if !(p.Rule.Lower < p.Rule.Upper) {
		return errors.New("cov_lower must be less than cov_upper")
	}
	return errors.Join(checkClip(p.Low, p.High), p.Rule.validate())
}

// Inputs are the ratios and the marks.
func (p ClipCov) Inputs() Inputs { return Ratios | Marked }

// Bounds are the clip's.
func (p ClipCov) Bounds() Bounds { return Bounds{Low: 1 - p.Low, High: 1 + p.High} }

// Evaluate writes the block's losses and coefficients.
func (p ClipCov) Evaluate(b *Block) {
	w := clipped(p.Low, p.High, 0)
	w.evaluate(b)
	for t, mark := range b.Marks {
		if mark != 0 {
			// Multiplied, so that a value that is no number stays one.
			b.Loss[t] *= 0
			b.Coef[t] = 0
		}
	}
}
