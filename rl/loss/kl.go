package loss

import (
	"fmt"
	"math"
)

// Estimator names a per-token estimate of KL(policy ‖ reference) from samples of the policy,
// with Δ = logp − ref.
type Estimator string

// The estimators.
const (
	K1     Estimator = "k1"  // Δ
	AbsKL  Estimator = "abs" // |Δ|
	K2     Estimator = "k2"  // ½Δ²
	K3     Estimator = "k3"  // e^(−Δ) + Δ − 1, clamped to ±10
	K3Plus Estimator = "k3+" // the value of k3 with the gradient of k2 (straight-through)
)

// k3Clamp bounds the value of k3; beyond it the gradient is 0.
const k3Clamp = 10

// Estimate returns the estimate and its derivative in logp.
func (e Estimator) Estimate(logp, ref float64) (value, gradient float64, err error) {
	delta := logp - ref
	switch e {
	case K1:
		return delta, 1, nil
	case AbsKL:
		if delta == 0 {
			return 0, 0, nil
		}
		return math.Abs(delta), math.Copysign(1, delta), nil
	case K2:
		return delta * delta / 2, delta, nil
	case K3, K3Plus:
		value, gradient = k3(-delta)
		if e == K3Plus {
			gradient = delta
		}
		return value, gradient, nil
	}
	return 0, 0, fmt.Errorf("estimate KL: unknown estimator %q", e)
}

// k3 is e^x − x − 1 with x = ref − logp clamped to ±20, and its derivative in logp.
func k3(x float64) (value, gradient float64) {
	c := clamp(x, LogRatioClamp)
	value = math.Expm1(c) - c
	if value > k3Clamp {
		return k3Clamp, 0
	}
	if c != x {
		return value, 0
	}
	return value, -math.Expm1(c)
}
