package cpu

import (
	"fmt"
	"math"
	"slices"

	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/rl/optimizer"
)

// trained is what an optimiser keeps of a model: how many steps it has taken, and each of its states in the model's
// flat order. Before the first step there are no states.
type trained[T float] struct {
	step   int64
	names  []string
	states [][]T
}

func newTrained[T float](step int64, names []string, size int) trained[T] {
	t := trained[T]{step: step, names: names}
	for range names {
		t.states = append(t.states, allocated[T](size))
	}
	return t
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

// step takes one step of an optimiser. Clipping scales the gradient by clip/(norm + 1e-6) where the norm is above clip,
// as PyTorch does.
func (r *resident[T]) step(o policy.StepOptions) (policy.StepStats, error) {
	names := o.Rule.Declaration().States
	if r.trained.names != nil && !slices.Equal(r.trained.names, names) {
		return policy.StepStats{}, fmt.Errorf("%w: %s keeps %v, and the model has been trained with %v",
			policy.ErrBadRequest, o.Rule.Declaration().Name, names, r.trained.names)
	}
	grad, norm, err := r.gradient()
	if err != nil {
		return policy.StepStats{}, err
	}
	if r.trained.names == nil {
		r.trained = newTrained[T](r.trained.step, names, len(grad))
	}
	r.trained.step++
	s := optimizer.Step{LR: o.LR, Number: r.trained.step, Scale: 1}
	stats := policy.StepStats{GradNorm: norm, Step: s.Number}
	if o.ClipNorm > 0 && norm > o.ClipNorm {
		s.Scale, stats.Clipped = o.ClipNorm/(norm+1e-6), true
	}
	r.model.f.changed()
	apply := kernelOf[T](o.Rule, s)
	r.forBlocks(func(_, lo, hi int) {
		states := make([][]T, len(names))
		for _, p := range r.model.params {
			from, to := max(lo, p.lo), min(hi, p.hi)
			if from >= to || p.frozen {
				continue
			}
			for i, all := range r.trained.states {
				states[i] = all[from:to]
			}
			apply(r.model.flat[from:to], grad[from:to], states, p.decay)
		}
	})
	return stats, nil
}

// kernelOf returns the kernel of a step. AdamW has a faster one for float32.
func kernelOf[T float](rule optimizer.Rule, s optimizer.Step) optimizer.Kernel[T] {
	kernels := rule.Kernels(s)
	if a, ok := rule.(optimizer.AdamW); ok && useFast[T]() {
		kernels.F32 = fast.adam(optimizer.AdamWStepOf[float32](a, s))
	}
	if k, ok := any(kernels.F32).(optimizer.Kernel[T]); ok {
		return k
	}
	return any(kernels.F64).(optimizer.Kernel[T])
}
