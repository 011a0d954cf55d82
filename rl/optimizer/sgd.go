package optimizer

// SGD with momentum, in PyTorch's form (Sutskever et al. 2013), and with decoupled weight decay (Loshchilov & Hutter
// 2019, algorithm 1):
//
//	v ← μ·v + g
//	θ ← θ·(1 − lr·decay) − lr·v
//
// Norms and biases do not decay. The momentum is not damped, so that a constant gradient comes to move weights by
// lr/(1 − μ) of it.

import (
	"cmp"
	"math"
)

var sgd = Declaration{
	Name: "sgd", Doc: "stochastic gradient descent with momentum",
	Source:   "Sutskever et al. 2013; Loshchilov & Hutter 2019, algorithm 1",
	Settings: SGD{Momentum: 0.9},
	States:   []string{"momentum_buffer"},
}

// SGD holds the settings of SGD.
type SGD struct {
	Momentum    float64 `json:"momentum" min:"0" max:"0.999999" doc:"decay of the sum of gradients"`
	WeightDecay float64 `json:"weight_decay"`
}

// Declaration implements Rule.
func (SGD) Declaration() Declaration { return Named("sgd") }

// Validate implements Rule.
func (s SGD) Validate() error {
	return cmp.Or(checkBelow("momentum", s.Momentum, 1), checkBelow("weight decay", s.WeightDecay, math.Inf(1)))
}

// Kernels implements Rule.
func (s SGD) Kernels(step Step) Kernels {
	return Kernels{F32: sgdKernel[float32](s, step), F64: sgdKernel[float64](s, step)}
}

func sgdKernel[T float32 | float64](s SGD, step Step) Kernel[T] {
	lr, scale, momentum := T(step.LR), T(step.Scale), T(s.Momentum)
	return func(w, g []T, states [][]T, decays bool) {
		v, shrink := states[0][:len(w)], T(1)
		if decays {
			shrink = T(1 - step.LR*s.WeightDecay)
		}
		g = g[:len(w)]
		for i := range w {
			v[i] = momentum*v[i] + g[i]*scale
			w[i] = w[i]*shrink - lr*v[i]
			g[i] = 0
		}
	}
}
