package loss

import (
	"fmt"
	"math"

	"github.com/ropewalk/ropewalk/rl/choice"
)

// GSPO (Zheng et al. 2025, eqs. 5–7 and 13–14): the ratio and its clip belong to the sequence,
//
//	s_i = exp(min((1/T_i) Σ_t l_t, 10)),  ℓ_t = max(−A·s_i, −A·clip(s_i, 1−ε_low, 1+ε_high))
//
// and its gradient reaches the tokens through s_{i,t} = sg(s_i)·exp(logp_t − sg(logp_t)), which is
// what differentiating s_i gives under the sequence mean. l_t = logp − Old: the denominator of s_i is Old, the proximal
// policy, for each token; the weights of TIS multiply the token's loss and are not part of s_i. Without a clip the
// coefficient is −A_t·s_i. GSPO takes the row's mean advantage, GSPO-token each token's own advantage. Statistics of
// the clip count rows. SAMPO is GSPO with GiGPO's advantage and dynamic sampling: a composition, not another loss.
//
// GSPO's aggregation is seq-mean-token-mean, although some tables print token-mean; a recipe may set another
// one.

// sequenceClamp bounds the mean log-ratio from above.
const sequenceClamp = 10

var gspo = Declaration{
	Choice: choice.Choice{
		Name: "gspo", Doc: "one clipped ratio for a row: the geometric mean of its tokens'",
		Source:   "GSPO (Zheng et al. 2025)",
		Settings: GSPO{Low: 0.003, High: 0.004},
		Rules:    []choice.Rule{sequenceClipBelowOne("gspo")},
	},
	Aggregation:  SeqMeanTokenMean,
	RowAdvantage: true,
}

var gspoToken = Declaration{
	Choice: choice.Choice{
		Name: "gspo_token", Doc: "the row's ratio, with advantages that may differ by token",
		Source:   "GSPO (Zheng et al. 2025), token form",
		Settings: GSPOToken{Low: 0.003, High: 0.004},
		Rules:    []choice.Rule{sequenceClipBelowOne("gspo_token")},
	},
	Aggregation: SeqMeanTokenMean,
}

// sequenceClipBelowOne refuses the clip of a token's ratio for the ratio of a row.
func sequenceClipBelowOne(name string) choice.Rule {
	return choice.Rule{
		Param: "clip_high", Reads: []string{"name"}, Doc: "below 1 for gspo and gspo_token",
		Fault: func(p choice.Params) string {
			high, _ := p["clip_high"].(float64)
			if high < 1 {
				return ""
			}
			return fmt.Sprintf("must be below 1 with loss.name %s, whose ratio is a geometric mean "+
				"(of the order of 1 ± 0.001), got %.9g", name, high)
		},
	}
}

// GSPO clips the sequence's ratio; every token has the row's mean advantage.
type GSPO struct {
	Low  float64 `json:"clip_low"`
	High float64 `json:"clip_high"`
}

// Name is "gspo".
func (p GSPO) Name() string { return "gspo" }

// Validate reports the first bad field.
func (p GSPO) Validate() error { return checkClip(p.Low, p.High) }

// Inputs asks for the means over the row.
func (p GSPO) Inputs() Inputs { return Sequence }

// Bounds returns the clip range of s.
func (p GSPO) Bounds() Bounds { return Bounds{Low: 1 - p.Low, High: 1 + p.High} }

// Evaluate writes the block's losses and coefficients.
func (p GSPO) Evaluate(b *Block) {
	w := clipped(p.Low, p.High, 0)
	a := b.MeanAdvantage
	v, g := w.at(SequenceRatio(b.MeanLogRatio), a < 0)
	for t := range b.Loss {
		b.Loss[t], b.Coef[t] = -a*v, -a*g
	}
	b.dropSequence()
}

// GSPOToken clips the sequence's ratio for each token's own advantage.
type GSPOToken struct {
	Low  float64 `json:"clip_low"`
	High float64 `json:"clip_high"`
}

// Name is "gspo_token".
func (p GSPOToken) Name() string { return "gspo_token" }

// Validate reports the first bad field.
func (p GSPOToken) Validate() error { return checkClip(p.Low, p.High) }

// Inputs asks for the means over the row.
func (p GSPOToken) Inputs() Inputs { return Sequence }

// Bounds returns the clip range of s.
func (p GSPOToken) Bounds() Bounds { return GSPO(p).Bounds() }

// Evaluate writes the block's losses and coefficients.
func (p GSPOToken) Evaluate(b *Block) {
	w := clipped(p.Low, p.High, 0)
	s := SequenceRatio(b.MeanLogRatio)
	gainLoss, gainCoef := w.at(s, false)
	costLoss, costCoef := w.at(s, true)
	for t, a := range b.Advantages {
		if a < 0 {
			b.Loss[t], b.Coef[t] = -a*costLoss, -a*costCoef
		} else {
			b.Loss[t], b.Coef[t] = -a*gainLoss, -a*gainCoef
		}
	}
	b.dropSequence()
}

// SequenceRatio returns s for a row's mean log-ratio.
func SequenceRatio(mean float64) float64 { return math.Exp(math.Min(mean, sequenceClamp)) }

// dropSequence sets the coefficients to 0 where the clamp cut the mean log-ratio.
func (b *Block) dropSequence() {
	if b.MeanLogRatio > sequenceClamp {
		clear(b.Coef)
	}
}
