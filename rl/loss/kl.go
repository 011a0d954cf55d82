package loss

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Estimates of KL(policy ‖ reference) per token from samples of the policy (Schulman 2020,
// "Approximating KL divergence"), with Δ = logp − ref, as a penalty + c·agg(k) on the loss. A
// trailing "+" keeps an estimator's value but gives it the gradient of k2, whose expectation is the
// true gradient (straight-through). Departures of k3, as in released trainers: ref − logp is clamped to ±20
// and the value to ±10. Where either clamp cuts, the gradient is 0.

// Estimator names a per-token estimate of KL(policy ‖ reference).
type Estimator string

// The estimators; any of them may carry a "+".
const (
	K1     Estimator = "k1"  // Δ
	AbsKL  Estimator = "abs" // |Δ|
	K2     Estimator = "k2"  // ½Δ²
	K3     Estimator = "k3"  // e^(−Δ) + Δ − 1, clamped to ±10
	K3Plus Estimator = "k3+" // the value of k3 with the gradient of k2
)

// k3Clamp bounds the value of k3; beyond it the gradient is 0.
const k3Clamp = 10

// Validate reports an unknown name.
func (e Estimator) Validate() error {
	if base, _ := e.split(); !slices.Contains([]Estimator{K1, AbsKL, K2, K3}, base) {
		return fmt.Errorf("kl estimator must be k1, abs, k2 or k3, with or without +, got %q", e)
	}
	return nil
}

// split removes the "+".
func (e Estimator) split() (base Estimator, straight bool) {
	name, straight := strings.CutSuffix(string(e), "+")
	return Estimator(name), straight
}

// Estimate returns the estimate and its derivative in logp.
func (e Estimator) Estimate(logp, ref float64) (value, gradient float64, err error) {
	if err := e.Validate(); err != nil {
		return 0, 0, fmt.Errorf("estimate KL: %w", err)
	}
	base, straight := e.split()
	delta := logp - ref
	switch base {
	case K1:
		value, gradient = delta, 1
	case AbsKL:
		value, gradient = absolute(delta)
	case K2:
		value, gradient = delta*delta/2, delta
	case K3:
		x := clamp(-delta, LogRatioClamp)
		value, gradient = k3(-delta, math.Expm1(x))
	}
	if straight {
		gradient = delta
	}
	return value, gradient, nil
}

func absolute(delta float64) (value, gradient float64) {
	if delta == 0 {
		return 0, 0
	}
	return math.Abs(delta), math.Copysign(1, delta)
}

// k3 is e^c − c − 1 of c = clamp(x), x = ref − logp, given e^c − 1, and its derivative in logp.
func k3(x, grown float64) (value, gradient float64) {
	c := clamp(x, LogRatioClamp)
	value = grown - c
	switch {
	case value > k3Clamp:
		return k3Clamp, 0
	case c != x:
		return value, 0
	}
	return value, -grown
}

// KL is a penalty on the divergence from a reference policy: + Coefficient·agg(estimate). It needs
// Row.Ref, and rows of count N enter N times.
type KL struct {
	Estimator   Estimator
	Coefficient float64 // ≥ 0; with 0 the estimate is only a statistic
}

// Name is "kl_" and the estimator.
func (k KL) Name() string { return "kl_" + string(k.Estimator) }

// Validate reports the first bad field.
func (k KL) Validate() error {
	if err := k.Estimator.Validate(); err != nil {
		return err
	}
	return checkNotNegative("kl coefficient", k.Coefficient)
}

// estimate writes value and gradient of every Δ.
func (k KL) estimate(delta, value, gradient []float64) {
	base, straight := k.Estimator.split()
	switch base {
	case K1:
		copy(value, delta)
		for t := range gradient {
			gradient[t] = 1
		}
	case AbsKL:
		for t, d := range delta {
			value[t], gradient[t] = absolute(d)
		}
	case K2:
		for t, d := range delta {
			value[t], gradient[t] = d*d/2, d
		}
	case K3:
		k3Loop(delta, value, gradient)
	}
	if straight {
		copy(gradient, delta)
	}
}

// k3Loop is k3 and its derivative of every Δ; delta may not be value or gradient.
func k3Loop(delta, value, gradient []float64) {
	if wide != nil {
		wide.k3(delta, value, gradient)
		return
	}
	for t, d := range delta {
		gradient[t] = -d
	}
	expLoop(value, gradient, LogRatioClamp)
	for t, d := range delta {
		grown := value[t] - 1
		if v := grown + d; v <= k3Clamp && d >= -LogRatioClamp && d <= LogRatioClamp { // by far the most
			value[t], gradient[t] = v, -grown
			continue
		}
		value[t], gradient[t] = k3(-d, grown)
	}
}
