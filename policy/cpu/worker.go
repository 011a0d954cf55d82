package cpu

import "runtime"

// worker does one part's arithmetic: it owns a matmul, scratch memory that only grows, and a gradient.
type worker[T float] struct {
	m  *model[T]
	mm matmul[T]
	s  scratch[T]

	gradFlat []T // nil until the first backward pass
	grad     weights[T]
}

// scratch is the memory that a pass needs in addition to activations. Sizes are per token of a chunk, unless noted.
type scratch[T float] struct {
	xn       []T // H, a normed residual stream
	q, k     []T // Q and K, normed and rotated
	h        []T // F, the output of SwiGLU
	p, dp    []T // attentionBlock × longest sequence
	dx, dxn  []T // H
	dh       []T // F
	dgu      []T // 2F
	dqkv     []T // Q+2K
	dq, datt []T // Q
	dk       []T // K
	// keys and values of a leaf behind its stem, and their gradients: K × longest sequence
	keys, values, dkeys, dvalues []T
	logits                       []T // rows of a head block × V
	rows                         []int
	arena                        []T // activations that are not kept
	expo                         []T
	ids                          []int32
}

func newWorker[T float](m *model[T], l library) *worker[T] {
	return &worker[T]{m: m, mm: newMatmul[T](l)}
}

// sized returns *buf with length n, its content undefined.
func sized[T any](buf *[]T, n int) []T {
	if cap(*buf) < n {
		*buf = allocated[T](n + n/8)
	}
	*buf = (*buf)[:cap(*buf)]
	return (*buf)[:n:n]
}

// ensureGrad makes the zeroed gradient if there is none.
func (w *worker[T]) ensureGrad() {
	if w.gradFlat == nil {
		w.gradFlat = allocated[T](len(w.m.flat))
		w.grad = view(w.m.shape, w.gradFlat)
	}
}

// linearBack adds dW += dyᵀ·x and writes dx = dy·W for n rows.
func (w *worker[T]) linearBack(dx, dw, dy, x, weight []T, n, in, out int) {
	w.mm.gemm(true, false, out, in, n, 1, dy, out, x, in, 1, dw, in)
	giveWay()
	w.mm.gemm(false, false, n, in, out, 1, dy, out, weight, in, 0, dx, in)
	giveWay()
}

// giveWay lets another engine's decoding step have the processor first. A step takes less than a millisecond, and tool
// calls and other rows wait for its end. A pass over a batch takes long, and nothing waits for a part of it. Without
// giveWay the step would wait until the scheduler preempts the pass, after 10 ms.
func giveWay() { runtime.Gosched() }
