package loss

import "github.com/ropewalk/ropewalk/rl/choice"

// The penalty on the distance from the reference policy, in the loss (see KL) or in each token's reward (see KLReward).
// Its coefficient is constant or moves with the divergence (see AdaptiveKL).

// The places of the penalty.
const (
	KLInLoss   = "loss"
	KLInReward = "reward"
)

// The controllers of the penalty's coefficient.
const (
	KLFixed    = "fixed"
	KLAdaptive = "adaptive"
)

var klTerm = Term{
	Choice: choice.Choice{
		Name: "kl", Field: "a penalty on the distance from the reference policy; null or absent = off",
		Settings: KLSettings{In: KLInLoss, Controller: KLFixed, Horizon: 10000},
	},
	Inner: []Inner{
		{
			Name: "in", Doc: "where the penalty on the distance from the reference enters",
			Choices: []choice.Choice{
				{
					Name: KLInLoss, Doc: "a term of the loss", Source: "GRPO; ARLArena §3.1; PRS",
					Reads: estimatedWith(K3), Needs: []choice.Need{choice.NeedReference},
				},
				{
					Name: KLInReward, Doc: "taken from each token's reward",
					Source: "PPO for language models (Ziegler et al. 2019)",
					Reads:  estimatedWith(K1), Needs: []choice.Need{choice.NeedReference},
				},
			},
		},
		{
			Name: "controller", Doc: "how the penalty's coefficient moves",
			Choices: []choice.Choice{
				{Name: KLFixed, Doc: "not at all", Source: "GRPO"},
				{
					Name: KLAdaptive, Doc: "towards a target divergence of the policy that sampled",
					Source: "Ziegler et al. 2019", Reads: choice.Reading("target", "horizon"),
				},
			},
		},
	},
}

// estimatedWith lists the fields that each place reads; the default of the estimator differs.
func estimatedWith(e Estimator) []choice.Param {
	return append(
		choice.Reading("controller", "target", "horizon"), choice.Param{Name: "estimator", Default: string(e)},
	)
}

// KLSettings are those of a recipe.
type KLSettings struct {
	Coefficient float64   `json:"coefficient" required:"true" above:"0" max:"1000" doc:"weight of the penalty; where it adapts, its first value"`
	In          string    `json:"in" doc:"where the penalty enters"`
	Estimator   Estimator `json:"estimator" bare:"true" enum:"k1|abs|k2|k3|k3+" doc:"estimate of a token's divergence; k3+ has the value of k3 and the gradient of k2"`
	Controller  string    `json:"controller" quiet:"true" doc:"how the coefficient moves"`
	Target      float64   `json:"target" bare:"true" above:"0" max:"1000" doc:"divergence that the coefficient steers to"`
	Horizon     int       `json:"horizon" min:"1" max:"1000000000" doc:"trajectories in which an error of one is made up for"`
}

// Add puts the penalty into the objective if that is its place. The coefficient is that of the step.
func (s KLSettings) Add(o *Objective, at Step) {
	if s.In == KLInLoss {
		o.KL = &KL{Estimator: s.Estimator, Coefficient: at.KL}
	}
}
