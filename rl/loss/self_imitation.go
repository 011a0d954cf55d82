package loss

import "errors"

// The self-imitation term of SPEAR (Qin et al. 2025, eqs. 8–13): rows of the replay buffer with a positive
// recalibrated advantage enter a clipped surrogate, whose ratio is to the policy that wrote them, times γ(t):
//
//	J = J_GRPO(batch) + γ·J_SIL(replay)
//
// The objective is the sum of two evaluations, one over the batch and one over the replayed rows, each with
// its own denominators. Released code takes the optimiser steps of the second after those of the first, which is
// the default of the pipeline. Package resample decides which rows are replayed.

// SelfImitation is a surrogate over replayed rows times Gamma.
type SelfImitation struct {
	Policy Surrogate // PPOClip, or ClipCov with the replay's bounds
	Gamma  float64   // γ(t) of this step, ≥ 0
}

// Name is "self_imitation".
func (s SelfImitation) Name() string { return "self_imitation" }

// Validate reports the first bad field.
func (s SelfImitation) Validate() error {
	if s.Policy == nil {
		return errors.New("self_imitation needs a policy loss")
	}
	return errors.Join(checkNotNegative("gamma", s.Gamma), s.Policy.Validate())
}

// Inputs returns the inputs of the inner surrogate.
func (s SelfImitation) Inputs() Inputs { return s.Policy.Inputs() }

// Bounds returns the bounds of the inner surrogate.
func (s SelfImitation) Bounds() Bounds { return s.Policy.Bounds() }

// Evaluate writes the block's losses and coefficients.
func (s SelfImitation) Evaluate(b *Block) {
	s.Policy.Evaluate(b)
	scaleLoop(b.Loss, s.Gamma)
	scaleLoop(b.Coef, s.Gamma)
}
