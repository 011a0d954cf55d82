package cpu

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"

	"github.com/ropewalk/ropewalk/internal/rescue"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/checkpoint"
)

// resident is what the engine holds under one role.
type resident[T float] struct {
	model   *model[T]
	source  *checkpoint.Checkpoint // its configuration and extra files; the tensors are dropped
	trained trained[T]
	digest  string
	workers []*worker[T] // one per part
	kept    map[policy.Kept]*keptPass[T]
	spare   [][]T // memory of dropped activations, for the next pass
	largest int   // floats of the activations of the largest pass so far, which bound spare
}

// keptPass is one forward pass that awaits its Backward.
type keptPass[T float] struct {
	parts       [][]keptChunk[T]
	lengths     []int
	outputs     policy.Outputs
	temperature float64
}

type keptChunk[T float] struct {
	c     *chunk
	a     *acts[T]
	arena []T
}

func newResident[T float](c *checkpoint.Checkpoint, l library, parts int) (*resident[T], error) {
	m, err := newModel[T](c)
	if err != nil {
		return nil, err
	}
	r := &resident[T]{model: m, source: c, kept: map[policy.Kept]*keptPass[T]{}}
	for range parts {
		r.workers = append(r.workers, newWorker(r.model, l))
	}
	if o := c.Optimizer; o != nil {
		r.trained = newTrained[T](o.Step, o.Names, len(r.model.flat))
		for k, tensors := range o.States {
			for i, p := range r.model.params {
				if err := readInto(r.trained.states[k][p.lo:p.hi], tensors[i]); err != nil {
					return nil, err
				}
			}
		}
	}
	c.Weights, c.Optimizer = nil, nil
	return r, nil
}

// checkpoint is the resident state as it is saved. Its tensors are the engine's own memory where that is float32, so it
// is written before the state changes.
func (r *resident[T]) checkpoint() *checkpoint.Checkpoint {
	c := *r.source
	for i, t := range c.Shape.Tensors() {
		t.Data = asFloat32(r.model.flat, r.model.params[i])
		c.Weights = append(c.Weights, t)
	}
	if r.trained.step == 0 {
		return &c
	}
	c.Optimizer = &checkpoint.Optimizer{Step: r.trained.step, Names: r.trained.names}
	for _, state := range r.trained.states {
		var tensors []checkpoint.Tensor
		for _, p := range r.model.params {
			tensors = append(tensors, checkpoint.Tensor{Data: asFloat32(state, p)})
		}
		c.Optimizer.States = append(c.Optimizer.States, tensors)
	}
	return &c
}

// asFloat32 returns a parameter's numbers. It copies them only if they are not float32.
func asFloat32[T float](v []T, p param) []float32 {
	if same, ok := any(v).([]float32); ok {
		return same[p.lo:p.hi:p.hi]
	}
	out := make([]float32, p.hi-p.lo)
	copyFloats(out, v[p.lo:p.hi])
	return out
}

// forParts runs f for every part concurrently and returns the error of the first part that has one. If a part panics,
// forParts panics: a panic in another goroutine would end the program.
func (r *resident[T]) forParts(f func(part int, w *worker[T]) error) error {
	errs := make([]error, len(r.workers))
	var wg sync.WaitGroup
	for i, w := range r.workers {
		wg.Go(func() { errs[i] = rescue.Do(func() error { return f(i, w) }) })
	}
	wg.Wait()
	for _, err := range errs {
		if p := (*rescue.Panic)(nil); errors.As(err, &p) {
			panic(p)
		}
	}
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// forBlocks runs f on the blocks of the flat vector, on several goroutines. Blocks do not depend on each other.
func (r *resident[T]) forBlocks(f func(block, lo, hi int)) {
	size := len(r.model.flat)
	blocks := (size + blockFloats - 1) / blockFloats
	_ = r.forParts(func(part int, _ *worker[T]) error {
		for b := part; b < blocks; b += len(r.workers) {
			f(b, b*blockFloats, min((b+1)*blockFloats, size))
		}
		return nil
	})
}

// forward runs whole sequences; with keep the returned pass awaits backward.
func (r *resident[T]) forward(
	ctx context.Context, req policy.ForwardRequest, to *policy.TokenOutputs,
) (*keptPass[T], error) {
	cost := make([]int, len(req.Sequences))
	longest := 0
	for i, s := range req.Sequences {
		cost[i], longest = len(s), max(longest, len(s))
	}
	r.model.rope.grow(longest)
	pass := &keptPass[T]{
		parts: make([][]keptChunk[T], len(r.workers)), lengths: cost, outputs: req.Outputs,
		temperature: req.Temperature,
	}
	shares := assignFamilies(families(req.Sequences, req.Shared), len(r.workers))
	for part, all := range shares {
		for _, c := range packChunks(req.Sequences, all) {
			k := keptChunk[T]{c: c}
			if req.Keep {
				k.arena = r.borrow(r.model.actsSize(c.len(), true))
			}
			pass.parts[part] = append(pass.parts[part], k)
		}
	}
	err := r.forParts(func(part int, w *worker[T]) error {
		for i := range pass.parts[part] {
			if err := ctx.Err(); err != nil {
				return err
			}
			k := &pass.parts[part][i]
			arena := k.arena
			if !req.Keep {
				arena = sized(&w.s.arena, r.model.actsSize(k.c.len(), false))
			}
			k.a = r.model.newActs(arena, k.c.len(), req.Keep)
			w.forward(k.c, k.a)
			w.outputs(k.c, k.a.out, req.Temperature, to)
			runtime.Gosched()
		}
		return nil
	})
	if err != nil || !req.Keep {
		r.giveBack(pass)
	}
	return pass, err
}

// backward adds a kept pass's gradients.
func (r *resident[T]) backward(ctx context.Context, pass *keptPass[T], co policy.Cotangents) error {
	h := r.model.shape.Hidden
	return r.forParts(func(part int, w *worker[T]) error {
		if len(pass.parts[part]) > 0 {
			w.ensureGrad()
		}
		for _, k := range pass.parts[part] {
			if err := ctx.Err(); err != nil {
				return err
			}
			dx := sized(&w.s.dx, k.c.len()*h)
			clear(dx)
			w.headBack(k.c, k.a.out, dx, pass.temperature, co)
			w.backward(k.c, k.a, dx)
		}
		return nil
	})
}

// borrow returns the smallest piece of spare memory that is large enough, or allocates one.
func (r *resident[T]) borrow(n int) []T {
	best := -1
	for i, s := range r.spare {
		if len(s) >= n && len(s) <= 2*n && (best < 0 || len(s) < len(r.spare[best])) {
			best = i
		}
	}
	if best < 0 {
		return allocated[T](n + n/8)
	}
	s := r.spare[best]
	r.spare = append(r.spare[:best], r.spare[best+1:]...)
	return s
}

// giveBack makes a pass's memory spare.
func (r *resident[T]) giveBack(pass *keptPass[T]) {
	size := 0
	for _, part := range pass.parts {
		for _, k := range part {
			if k.arena != nil {
				r.spare = append(r.spare, k.arena)
				size += len(k.arena)
			}
		}
	}
	pass.parts = nil
	r.largest = max(r.largest, size)
	total := 0
	for _, s := range r.spare {
		total += len(s)
	}
	for total > r.largest { // the oldest first: batches have other sizes now
		total -= len(r.spare[0])
		r.spare = slices.Delete(r.spare, 0, 1)
	}
}

// discard drops kept passes and gradients.
func (r *resident[T]) discard() {
	clear(r.kept)
	r.spare = nil
	for _, w := range r.workers {
		clear(w.gradFlat)
	}
}
