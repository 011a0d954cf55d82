package cpu

import "math"

// rope holds the cosines and sines of rotary embedding (Su et al. 2021) in the half-rotation convention:
// dimension i turns with dimension i+dim/2 by the angle position·perPosition[i], which is position·theta^(−i/half)
// unless the checkpoint stretches it (checkpoint.RopeScaling).
type rope[T float] struct {
	dim         int // of a head
	perPosition []float64
	factor      float64 // of cosines and sines
	cos, sin    []T     // [positions][dim/2]
}

// grow makes sure that the table has entries for positions below n. No one may use the table at the same time.
func (r *rope[T]) grow(n int) {
	have := len(r.cos) / len(r.perPosition)
	for p := have; p < n; p++ {
		for _, f := range r.perPosition {
			angle := float64(p) * f
			r.cos = append(r.cos, T(math.Cos(angle)*r.factor))
			r.sin = append(r.sin, T(math.Sin(angle)*r.factor))
		}
	}
}

// at returns the cosines and sines of one position.
func (r *rope[T]) at(pos int) (cos, sin []T) {
	half := len(r.perPosition)
	lo, hi := pos*half, (pos+1)*half
	return r.cos[lo:hi], r.sin[lo:hi]
}

// rotate turns the head vector x in place; with sign −1 it turns the other way, which is the gradient's way.
func rotate[T float](x, cos, sin []T, sign T) {
	if useFast[T]() {
		fast.rotate(as[float32](x), as[float32](cos), as[float32](sin), float32(sign))
		return
	}
	h := len(cos)
	a, b, sin := x[:h], x[h:2*h], sin[:h]
	for i, c := range cos {
		s := sin[i] * sign
		a[i], b[i] = a[i]*c-b[i]*s, b[i]*c+a[i]*s
	}
}

// heads norms and rotates every head of one row: y = rope(rmsNorm(x)·w). Without w, heads are not normed.
func (r *rope[T]) heads(y, x, w []T, pos int, eps float64) {
	cos, sin := r.at(pos)
	for i := 0; i < len(x); i += r.dim {
		yi, xi := y[i:i+r.dim], x[i:i+r.dim]
		if w != nil {
			scaleMul(yi, xi, w, rmsInverse(xi, eps))
		} else {
			copy(yi, xi)
		}
		rotate(yi, cos, sin, 1)
	}
}

// headsBack writes dx and adds dw for heads at x, given dy, which it overwrites.
func (r *rope[T]) headsBack(dx, dw, dy, x, w []T, pos int, eps float64) {
	cos, sin := r.at(pos)
	clear(dx)
	for i := 0; i < len(x); i += r.dim {
		dxi, dyi := dx[i:i+r.dim], dy[i:i+r.dim]
		rotate(dyi, cos, sin, -1)
		if w == nil {
			copy(dxi, dyi)
			continue
		}
		rmsRowBack(dxi, dw, dyi, x[i:i+r.dim], w, eps)
	}
}
