package loss

import (
	"errors"
	"fmt"

	"github.com/ropewalk/ropewalk/rl/choice"
)

// Clip-Cov (Cui et al. 2025, "The Entropy Mechanism of RL", eqs. 10–11; SPEAR eq. 16). Tokens whose advantage
// and log-probability covary strongly drive the entropy down. A few of them are drawn and lose their gradient:
//
//	c_t = (A_t − Ā)(logp_t − mean logp);  ℓ_t = 0 for a drawn token, else PPO's clipped loss
//
// A token is a candidate if PPO did not clip it and lb < c_t < ub (≤ with a budget for each row). min(budget,
// candidates) of them are drawn without replacement. A drawn token stays in the denominator. Departures: the scope is
// the mini-batch, not the micro-batch, and the log-ratio is clamped to ±20. There is no dual clip, as in the released
// code.

var clipCov = Declaration{
	Choice: choice.Choice{
		Name: "clip_cov", Doc: "ppo_clip without gradient on a few of the most covariant tokens",
		Source:   "Clip-Cov (Cui et al. 2025); SPEAR eq 16",
		Settings: clipCovSettings{Low: 0.2, High: 0.28, Lower: 1, Upper: 5, Ratio: 0.0002, Scope: ScopeMinibatch},
		Needs:    []choice.Need{choice.NeedMinibatch},
		Rules: []choice.Rule{{
			Param: "cov_low", Reads: []string{"cov_high"}, Doc: "below cov_high",
			Fault: func(p choice.Params) string {
				low, high := p["cov_low"].(float64), p["cov_high"].(float64)
				if low < high {
					return ""
				}
				return fmt.Sprintf("must be below loss.cov_high (%.9g), or no token lies between, got %.9g", high, low)
			},
		}},
		// The bounds of SPEAR's mathematics runs, scaled to the spread of advantages in losstest.
		Example: clipCovSettings{Low: 0.2, High: 0.28, Lower: 0.2, Upper: 40, Ratio: 0.02},
	},
}

// clipCovSettings are the parameters of Clip-Cov in a recipe.
type clipCovSettings struct {
	Low   float64         `json:"clip_low"`
	High  float64         `json:"clip_high"`
	Lower float64         `json:"cov_low" min:"-1000000" max:"1000000" doc:"tokens with more covariance than this …"`
	Upper float64         `json:"cov_high" min:"-1000000" max:"1000000" doc:"… and less than this may be drawn"`
	Ratio float64         `json:"cov_ratio" above:"0" max:"1" doc:"share of the tokens that are drawn (clip_cov), or that are penalised, the most covariant first (kl_cov)"`
	Scope CovarianceScope `json:"cov_scope" enum:"minibatch|microbatch|group" doc:"the tokens that covariances are centred over and drawn from: of the mini-batch, of the micro-batch (as released), or of the same position in a group (SPEAR eq 16)"`
}

// Surrogate makes the loss. Where covariances are centred over the positions of a group, each row has a budget of its
// own, as in SPEAR's eq. 16.
func (c clipCovSettings) Surrogate() Surrogate {
	return ClipCov{Low: c.Low, High: c.High, Rule: CovarianceRule{
		Scope: c.Scope, Ratio: c.Ratio, Lower: c.Lower, Upper: c.Upper, PerRow: c.Scope == ScopeGroup,
	}}
}

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

// Inputs asks for the importance ratios and the marks.
func (p ClipCov) Inputs() Inputs { return Ratios | Marked }

// Bounds returns the clip range.
func (p ClipCov) Bounds() Bounds { return Bounds{Low: 1 - p.Low, High: 1 + p.High} }

// Evaluate writes the block's losses and coefficients.
func (p ClipCov) Evaluate(b *Block) {
	w := clipped(p.Low, p.High, 0)
	w.evaluate(b)
	for t, mark := range b.Marks {
		if mark != 0 {
			// Multiply instead of assigning 0, so that a NaN stays a NaN and is reported.
			b.Loss[t] *= 0
			b.Coef[t] = 0
		}
	}
}
