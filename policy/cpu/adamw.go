package cpu

import (
	"math"

	"github.com/ropewalk/ropewalk/policy"
)

// adam is AdamW's state: two moments per parameter in the model's flat order.
type adam[T float] struct {
	step          int64
	first, second []T
}

// blockFloats is the size of the blocks that the optimiser's goroutines work on. Norms are summed within each block
// and then over the blocks in order, so that they do not depend on the number of goroutines.
const blockFloats = 1 << 14

// gradient adds the gradients of all parts to the first part's and returns it with its global L2 norm. If it holds a
// NaN or Inf, the error names the parameter.
func (r *resident[T]) gradient() ([]T, float64, error) {
	var parts [][]T
	for _, w := range r.workers {
		if w.gradFlat != nil {
			parts = append(parts, w.gradFlat)
		}
	}
	if len(parts) == 0 {
		r.workers[0].ensureGrad()
		parts = [][]T{r.workers[0].gradFlat}
	}
	sum := parts[0]
	blocks := (len(sum) + blockFloats - 1) / blockFloats
	squares := make([]float64, blocks)
	r.forBlocks(func(block, lo, hi int) {
		for _, p := range parts[1:] {
			addTo(sum[lo:hi], p[lo:hi])
			clear(p[lo:hi])
		}
		squares[block] = sumSquares(sum[lo:hi])
	})
	var total float64
	for _, s := range squares {
		total += s
	}
	if math.IsNaN(total) || math.IsInf(total, 0) {
		return nil, 0, &policy.NonFiniteError{Name: r.nonFinite(sum)}
	}
	return sum, math.Sqrt(total), nil
}

// nonFinite names the first parameter whose gradient holds a NaN or Inf.
func (r *resident[T]) nonFinite(grad []T) string {
	for _, p := range r.model.params {
		for _, v := range grad[p.lo:p.hi] {
			if f := float64(v); math.IsNaN(f) || math.IsInf(f, 0) {
				return p.name
			}
		}
	}
	return "the gradient's norm"
}

// step applies one AdamW step (Loshchilov & Hutter 2019, algorithm 2) with bias correction:
// θ ← θ·(1 − lr·decay) − lr·m̂/(√v̂ + ε). Norms and biases do not decay. Clipping scales the gradient by
// clip/(norm + 1e-6) where the norm is above clip, as PyTorch does.
func (r *resident[T]) step(o policy.StepOptions) (policy.StepStats, error) {
	grad, norm, err := r.gradient()
	if err != nil {
		return policy.StepStats{}, err
	}
	a := &r.adam
	if a.first == nil {
		a.first, a.second = allocated[T](len(grad)), allocated[T](len(grad))
	}
	a.step++
	stats := policy.StepStats{GradNorm: norm, Step: a.step}
	factor := 1.0
	if o.ClipNorm > 0 && norm > o.ClipNorm {
		factor, stats.Clipped = o.ClipNorm/(norm+1e-6), true
	}
	r.model.f.changed()
	u := update[T]{
		factor: T(factor), beta1: T(o.Beta1), beta2: T(o.Beta2), epsilon: T(o.Epsilon),
		rate: T(o.LR / (1 - math.Pow(o.Beta1, float64(a.step)))),
		bias: T(1 / math.Sqrt(1-math.Pow(o.Beta2, float64(a.step)))),
	}
	r.forBlocks(func(_, lo, hi int) {
		for _, p := range r.model.params {
			from, to := max(lo, p.lo), min(hi, p.hi)
			if from >= to || p.frozen {
				continue
			}
			shrink := T(1)
			if p.decay {
				shrink = T(1 - o.LR*o.WeightDecay)
			}
			u.apply(r.model.flat[from:to], a.first[from:to], a.second[from:to], grad[from:to], shrink)
		}
	})
	return stats, nil
}

// update holds one step's scalars.
type update[T float] struct{ factor, beta1, beta2, epsilon, rate, bias T }

// apply updates weights and moments and zeroes the gradient.
func (u update[T]) apply(w, m, v, g []T, shrink T) {
	if useFast[T]() {
		narrow := update[float32]{
			float32(u.factor), float32(u.beta1), float32(u.beta2), float32(u.epsilon), float32(u.rate), float32(u.bias),
		}
		fast.adam(narrow, as[float32](w), as[float32](m), as[float32](v), as[float32](g), float32(shrink))
		return
	}
	m, v, g = m[:len(w)], v[:len(w)], g[:len(w)]
	for i := range w {
		d := g[i] * u.factor
		m[i] += (1 - u.beta1) * (d - m[i])
		v[i] += (1 - u.beta2) * (d*d - v[i])
		w[i] = w[i]*shrink - u.rate*m[i]/(sqrt(v[i])*u.bias+u.epsilon)
		g[i] = 0
	}
}
