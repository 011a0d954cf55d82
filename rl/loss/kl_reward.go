package loss

import (
	"errors"
	"fmt"
	"math"
)

// KL as part of the reward (Ouyang et al. 2022): each token's reward becomes reward − β·k(old, ref)·m. The
// controllers of β (Ziegler et al. 2019, section 2.2) also serve a penalty in the loss: β is constant, or
// follows a target,
//
//	err = clip(KL/target − 1, ±0.2),  β ← β·(1 + err·n/horizon)
//
// with n the number of trajectories of the step and KL its mean: the mean over live rows of each
// row's mean over its tokens.

// KLReward subtracts a KL estimate from token rewards.
type KLReward struct {
	Estimator Estimator // "" is k1
	Beta      float64   // ≥ 0
}

// Validate reports the first bad field.
func (k KLReward) Validate() error {
	return errors.Join(k.estimator().Validate(), checkNotNegative("kl beta", k.Beta))
}

func (k KLReward) estimator() Estimator {
	if k.Estimator == "" {
		return K1
	}
	return k.Estimator
}

// Apply returns the rewards minus the penalty, by row and token, and the mean KL of the rows. Rewards off the
// mask do not change.
func (k KLReward) Apply(rewards, old, ref [][]float64, masks [][]int32) (out [][]float64, mean float64, err error) {
	if err := k.Validate(); err != nil {
		return nil, 0, err
	}
	if len(old) != len(rewards) || len(ref) != len(rewards) || len(masks) != len(rewards) {
		return nil, 0, fmt.Errorf(
			"subtract KL: %d rows of rewards, %d old, %d ref, %d masks", len(rewards), len(old), len(ref), len(masks),
		)
	}
	out = make([][]float64, len(rewards))
	var means []float64
	for i := range rewards {
		row := Row[float64]{Old: old[i], Ref: ref[i], Advantages: rewards[i], Mask: masks[i], Count: 1}
		if err := checkKLRow(row); err != nil {
			return nil, 0, fmt.Errorf("subtract KL of row %d: %w", i, err)
		}
		var live bool
		var m float64
		if out[i], m, live = k.row(row); live {
			means = append(means, m)
		}
	}
	if len(means) == 0 {
		return out, 0, nil
	}
	n := float64(len(means))
	return out, sortedSum(means) / n, nil
}

// MeanKL returns the mean KL of the rows, to which a penalty in the loss adapts. Masked tokens and dead rows are
// not counted; without live rows it is 0.
func MeanKL(e Estimator, old, ref [][]float64, masks [][]int32) (float64, error) {
	none := make([][]float64, len(masks))
	for i, m := range masks {
		none[i] = make([]float64, len(m))
	}
	_, mean, err := KLReward{Estimator: e}.Apply(none, old, ref, masks)
	return mean, err
}

func checkKLRow(r Row[float64]) error {
	return errors.Join(
		r.checkMask(), r.checkField("reward", r.Advantages, math.Inf(1)),
		r.checkField("old log-probability", r.Old, oldSlack),
		r.checkField("reference log-probability", r.Ref, math.Inf(1)),
	)
}

// row penalises one valid row.
func (k KLReward) row(r Row[float64]) (rewards []float64, mean float64, live bool) {
	rewards = make([]float64, len(r.Mask))
	n := 0
	for t, m := range r.Mask {
		rewards[t] = r.Advantages[t]
		if m == 0 {
			continue
		}
		// The estimator was validated.
		value, _, _ := k.estimator().Estimate(r.Old[t], r.Ref[t])
		rewards[t] -= k.Beta * value
		mean += value
		n++
	}
	if n == 0 {
		return rewards, 0, false
	}
	return rewards, mean / float64(n), true
}

// AdaptiveKL steers β towards a target. With a Horizon of 0 β is constant.
type AdaptiveKL struct {
	Target  float64 // > 0
	Horizon float64 // > 0, in trajectories
}

// controllerError bounds the relative error that one step's KL may contribute.
const controllerError = 0.2

// Validate reports the first bad field.
func (c AdaptiveKL) Validate() error {
	switch {
	case c.Horizon == 0:
		return nil
	case !(c.Horizon > 0) || !finite(c.Horizon):
		return fmt.Errorf("kl horizon must be finite and > 0, or 0 for a fixed coefficient, got %g", c.Horizon)
	case !(c.Target > 0) || !finite(c.Target):
		return fmt.Errorf("kl target must be finite and > 0, got %g", c.Target)
	}
	return nil
}

// Next returns the coefficient after a step of n trajectories whose mean KL was kl.
func (c AdaptiveKL) Next(beta, kl float64, n int) float64 {
	if c.Horizon == 0 {
		return beta
	}
	return beta * (1 + clamp(kl/c.Target-1, controllerError)*float64(n)/c.Horizon)
}
