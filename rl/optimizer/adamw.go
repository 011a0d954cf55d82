package optimizer

// AdamW (Loshchilov & Hutter 2019, algorithm 2), with bias correction:
//
//	m ← m + (1 − β₁)·(g − m)
//	v ← v + (1 − β₂)·(g² − v)
//	θ ← θ·(1 − lr·decay) − lr·m̂/(√v̂ + ε)    with m̂ = m/(1 − β₁ᵗ), v̂ = v/(1 − β₂ᵗ)
//
// Norms and biases do not decay.

import (
	"cmp"
	"math"
)

var adamW = Declaration{
	Name: AdamWName, Doc: "AdamW, the gradient's mean over the root of its mean square",
	Source:   "Loshchilov & Hutter 2019, algorithm 2",
	Settings: AdamW{Beta1: 0.9, Beta2: 0.95, Epsilon: 1e-8},
	States:   []string{"exp_avg", "exp_avg_sq"},
}

// AdamW holds AdamW's settings.
type AdamW struct {
	Beta1       float64 `json:"beta1" min:"0" max:"0.999999" doc:"decay of the gradient's mean"`
	Beta2       float64 `json:"beta2" min:"0" max:"0.999999" doc:"decay of the gradient's square"`
	Epsilon     float64 `json:"epsilon" above:"0" max:"1" doc:"added to the root of the second moment"`
	WeightDecay float64 `json:"weight_decay" min:"0" max:"10" doc:"decoupled weight decay"`
}

// Declaration implements Rule.
func (AdamW) Declaration() Declaration { return Named(AdamWName) }

// Validate implements Rule.
func (a AdamW) Validate() error {
	return cmp.Or(checkBelow("beta1", a.Beta1, 1), checkBelow("beta2", a.Beta2, 1),
		checkBelow("epsilon", a.Epsilon, math.Inf(1)), checkBelow("weight decay", a.WeightDecay, math.Inf(1)))
}

// Kernels implements Rule.
func (a AdamW) Kernels(s Step) Kernels {
	return Kernels{F32: AdamWStepOf[float32](a, s).Apply, F64: AdamWStepOf[float64](a, s).Apply}
}

// AdamWStep holds the numbers of one step of AdamW. Rate and Bias correct the bias of the means; Shrink is what decay
// multiplies weights with.
type AdamWStep[T float32 | float64] struct{ Scale, Beta1, Beta2, Epsilon, Rate, Bias, Shrink T }

// AdamWStepOf returns the numbers of a step.
func AdamWStepOf[T float32 | float64](a AdamW, s Step) AdamWStep[T] {
	return AdamWStep[T]{
		Scale: T(s.Scale), Beta1: T(a.Beta1), Beta2: T(a.Beta2), Epsilon: T(a.Epsilon),
		Rate:   T(s.LR / (1 - math.Pow(a.Beta1, float64(s.Number)))),
		Bias:   T(1 / math.Sqrt(1-math.Pow(a.Beta2, float64(s.Number)))),
		Shrink: T(1 - s.LR*a.WeightDecay),
	}
}

// Apply is a Kernel.
func (u AdamWStep[T]) Apply(w, g []T, states [][]T, decays bool) {
	m, v, shrink := states[0][:len(w)], states[1][:len(w)], T(1)
	if decays {
		shrink = u.Shrink
	}
	g = g[:len(w)]
	for i := range w {
		d := g[i] * u.Scale
		m[i] += (1 - u.Beta1) * (d - m[i])
		v[i] += (1 - u.Beta2) * (d*d - v[i])
		w[i] = w[i]*shrink - u.Rate*m[i]/(T(math.Sqrt(float64(v[i])))*u.Bias+u.Epsilon)
		g[i] = 0
	}
}
