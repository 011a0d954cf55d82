package cpu

import "math"

// rope holds the cosines and sines of rotary embedding (Su et al. 2021) in the half-rotation convention:
// dimension i turns with dimension i+half by the angle position·theta^(−i/half).
type rope[T float] struct {
	half     int
	theta    float64
	cos, sin []T // [positions][half]
}

// grow makes sure that the table has entries for positions below n. No one may use the table at the same time.
func (r *rope[T]) grow(n int) {
	have := len(r.cos) / r.half
	for p := have; p < n; p++ {
		for i := range r.half {
			angle := float64(p) * math.Pow(r.theta, -float64(i)/float64(r.half))
			r.cos = append(r.cos, T(math.Cos(angle)))
			r.sin = append(r.sin, T(math.Sin(angle)))
		}
	}
}

// at returns the cosines and sines of one position.
func (r *rope[T]) at(pos int) (cos, sin []T) {
	lo, hi := pos*r.half, (pos+1)*r.half
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

// heads norms and rotates every head of one row: y = rope(rmsNorm(x)·w).
func (r *rope[T]) heads(y, x, w []T, pos int, eps float64) {
	cos, sin := r.at(pos)
	d := len(w)
	for i := 0; i < len(x); i += d {
		yi, xi := y[i:i+d], x[i:i+d]
		scaleMul(yi, xi, w, rmsInverse(xi, eps))
		rotate(yi, cos, sin, 1)
	}
}

// headsBack writes dx and adds dw for heads at x, given dy, which it overwrites.
func (r *rope[T]) headsBack(dx, dw, dy, x, w []T, pos int, eps float64) {
	cos, sin := r.at(pos)
	d := len(w)
	clear(dx)
	for i := 0; i < len(x); i += d {
		rotate(dy[i:i+d], cos, sin, -1)
		rmsRowBack(dx[i:i+d], dw, dy[i:i+d], x[i:i+d], w, eps)
	}
}
