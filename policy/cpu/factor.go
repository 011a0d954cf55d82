package cpu

import "github.com/ropewalk/ropewalk/policy/cpu/sgemm"

// factor is a weight matrix W in the forms in which products y = x·Wᵀ read it.
type factor[T float] struct {
	w       []T // out×in
	out, in int
	// packed, where there is one, holds the same numbers laid out for the own kernels: generation multiplies a few rows
	// by every matrix again and again, and laying it out each time would cost as much as the product.
	packed *sgemm.Packed
}

// factors are the matrices of a model.
type factors[T float] struct {
	layers []layerFactors[T]
	head   *factor[T]
	memory []float32 // of the packed ones; nil until the first generation
	fresh  bool      // whether memory holds the weights as they are
}

type layerFactors[T float] struct{ qkv, out, gate, up, down *factor[T] }

func newFactors[T float](w *weights[T], d dims) factors[T] {
	f := factors[T]{head: &factor[T]{w: w.head, out: d.V, in: d.H}}
	for _, l := range w.layers {
		f.layers = append(f.layers, layerFactors[T]{
			qkv:  &factor[T]{w: l.qkv, out: d.Q + 2*d.K, in: d.H},
			out:  &factor[T]{w: l.out, out: d.H, in: d.Q},
			gate: &factor[T]{w: l.gu[:d.F*d.H], out: d.F, in: d.H},
			up:   &factor[T]{w: l.gu[d.F*d.H:], out: d.F, in: d.H},
			down: &factor[T]{w: l.down, out: d.H, in: d.F},
		})
	}
	return f
}

func (f *factors[T]) all() []*factor[T] {
	out := []*factor[T]{f.head}
	for _, l := range f.layers {
		out = append(out, l.qkv, l.out, l.gate, l.up, l.down)
	}
	return out
}

// pack lays all matrices out for the own kernels if they are not yet. Every part does a share of each matrix.
func (f *factors[T]) pack(t *team) error {
	if f.fresh {
		return nil
	}
	all, size := f.all(), 0
	for _, m := range all {
		size += sgemm.PackedSize(m.in, m.out)
	}
	sized(&f.memory, size)
	packed := make([]sgemm.Packed, len(all))
	err := t.run(func(part int) error {
		memory := f.memory
		for i, m := range all {
			cols := rangeOfPart(m.out, part, t.parts, lotUnit)
			p := sgemm.Pack(memory, as[float32](m.w), m.out, m.in, cols.lo, cols.hi)
			if part == 0 {
				packed[i] = p
			}
			memory = memory[sgemm.PackedSize(m.in, m.out):]
		}
		return nil
	})
	if err != nil {
		return err
	}
	for i, m := range all {
		m.packed = &packed[i]
	}
	f.fresh = true
	return nil
}

// changed notes that the packed matrices are out of date.
func (f *factors[T]) changed() {
	f.fresh = false
	for _, m := range f.all() {
		m.packed = nil
	}
}

// product writes the given columns of y = x·Wᵀ (+ y if add) for n rows; rows of y are ldy apart.
func (w *worker[T]) product(y []T, ldy int, x []T, n int, f *factor[T], cols interval, add bool) {
	if own, ok := w.mm.(*ownMatmul[T]); ok && f.packed != nil {
		own.GemmPacked(n, as[float32](x), f.in, *f.packed, cols.lo, cols.hi, add, as[float32](y), ldy)
		return
	}
	if cols.lo == cols.hi {
		return
	}
	var beta T
	if add {
		beta = 1
	}
	w.mm.gemm(false, true, n, cols.hi-cols.lo, f.in, 1, x, f.in, f.w[cols.lo*f.in:], f.in, beta, y[cols.lo:], ldy)
}

// linear writes y = x·Wᵀ (+ y if add) for n rows.
func (w *worker[T]) linear(y, x []T, n int, f *factor[T], add bool) {
	w.product(y, f.out, x, n, f, interval{0, f.out}, add)
}

// gateUp writes both halves of the feed-forward layer's middle, n rows of [gate | up].
func (w *worker[T]) gateUp(gu, x []T, n int, l *layerFactors[T], cols interval) {
	f := l.gate.out
	w.product(gu, 2*f, x, n, l.gate, cols, false)
	w.product(gu[f:], 2*f, x, n, l.up, cols, false)
}
