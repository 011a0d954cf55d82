package loss

import (
	"math"

	"github.com/ropewalk/ropewalk/rl/choice"
)

// Truncated importance sampling between the engine that generated and the engine that trains (Yao et
// al. 2025): every token's policy loss is multiplied by the constant
//
//	w_t = min(exp(clamp(old_logp − rollout_logp, ±20)), cap)
//
// No gradient runs through it.

var tisTerm = Term{Choice: choice.Choice{
	Name: "tis", Doc: "each token's loss times min(exp(old − rollout), cap)",
	Source: "truncated importance sampling (Yao et al. 2025)",
	Field: "truncated importance sampling between the engine that sampled and the one that trains; null or absent = " +
		"off",
	Settings: TIS{Cap: 2},
	Needs:    []choice.Need{choice.NeedOldLogProbs, choice.NeedRolloutLogProbs},
}}

// TIS weighs each token by the ratio of the trainer's probability to that of the engine that sampled it, truncated at
// Cap.
type TIS struct {
	Cap float64 `json:"cap" above:"0" max:"1000" doc:"greatest weight of a token"`
}

// Add puts the weights into the objective.
func (w TIS) Add(o *Objective, _ Step) { o.TIS = &w }

// Validate reports the first bad field.
func (w TIS) Validate() error { return choice.Check("tis ", w) }

// Weight is the weight of one token.
func (w TIS) Weight(old, rollout float64) float64 {
	return math.Min(math.Exp(clamp(old-rollout, LogRatioClamp)), w.Cap)
}
