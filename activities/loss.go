package activities

import (
	"fmt"

	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/rl/loss"
)

// objective is what the recipe's method minimises, with the coefficient of the step's penalty on the
// divergence from the reference, if the loss holds one.
func objective(recipe *recipes.Recipe, coefficient float64) (loss.Objective, error) {
	l := recipe.Loss
	s, err := surrogate(l)
	if err != nil {
		return loss.Objective{}, err
	}
	o := loss.Objective{
		Policy:      s,
		Aggregation: loss.Aggregation{Mode: loss.Mode(l.Aggregation), Horizon: recipe.Rollout.MaxTokens},
	}
	if m := l.SequenceMask; m != nil {
		o.SequenceMask = &loss.SequenceMask{Delta: m.Delta, Shrink: m.Denominator == "shrink"}
	}
	if l.KL != nil && l.KL.In == klInLoss {
		o.KL = &loss.KL{Estimator: loss.Estimator(l.KL.Estimator), Coefficient: coefficient}
	}
	if l.TIS != nil {
		o.TIS = &loss.TIS{Cap: l.TIS.Cap}
	}
	if l.Entropy != 0 {
		o.Entropy = &loss.Entropy{Coefficient: l.Entropy}
	}
	return o, nil
}

// surrogate is the policy loss by its name in the slot table.
func surrogate(l recipes.Loss) (loss.Surrogate, error) {
	switch l.Name {
	case "ppo_clip":
		return loss.PPOClip{Low: l.ClipLow, High: l.ClipHigh, Dual: l.DualClip}, nil
	case "cispo":
		return loss.CISPO{Low: l.ClipLow, High: l.ClipHigh, Mask: l.Mask}, nil
	case "sapo":
		return loss.SAPO{TauPositive: l.TauPositive, TauNegative: l.TauNegative}, nil
	case "gspo":
		return loss.GSPO{Low: l.ClipLow, High: l.ClipHigh}, nil
	case "gspo_token":
		return loss.GSPOToken{Low: l.ClipLow, High: l.ClipHigh}, nil
	case "gpg":
		return loss.GPG{}, nil
	case "gppo":
		return loss.GPPO{Low: l.ClipLow, High: l.ClipHigh}, nil
	case "ce_gppo":
		return loss.CEGPPO{Low: l.ClipLow, High: l.ClipHigh, Beta1: l.Beta1, Beta2: l.Beta2}, nil
	case "aepo_clip":
		return loss.AEPOClip{Low: l.ClipLow, High: l.ClipHigh, Dual: l.DualClip}, nil
	case "clip_cov":
		return loss.ClipCov{Low: l.ClipLow, High: l.ClipHigh, Rule: covarianceRule(l)}, nil
	case "kl_cov":
		return loss.KLCov{Coefficient: l.CovCoefficient, Rule: covarianceRule(l)}, nil
	default:
		return nil, fmt.Errorf("loss.name: no stage builds %s", l.Name)
	}
}

// covarianceRule selects over the scope that the recipe names. Centred over a group's positions, each
// row has a budget of its own, as SPEAR's eq. 16 has it.
func covarianceRule(l recipes.Loss) loss.CovarianceRule {
	scope := loss.CovarianceScope(l.CovScope)
	return loss.CovarianceRule{Scope: scope, Ratio: l.CovRatio, Lower: l.CovLow, Upper: l.CovHigh, PerRow: scope == loss.ScopeGroup}
}
