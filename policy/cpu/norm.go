package cpu

import "math"

// rmsNorm writes y = x·w/√(mean(x²)+eps) for each row of width len(w) (Zhang & Sennrich 2019).
func rmsNorm[T float](y, x, w []T, eps float64) {
	h := len(w)
	for i := 0; i+h <= len(x); i += h {
		xi, yi := x[i:i+h], y[i:i+h]
		scaleMul(yi, xi, w, rmsInverse(xi, eps))
	}
}

// rmsInverse is 1/√(mean(x²)+eps).
func rmsInverse[T float](x []T, eps float64) T {
	return T(1 / math.Sqrt(float64(dot(x, x))/float64(len(x))+eps))
}

// rmsNormBack adds to dx and dw the gradients of rmsNorm at x, given dy. With x̂ = x·inv:
// dw += Σ dy·x̂ and dx += inv·(w·dy − x̂·mean(w·dy·x̂)).
func rmsNormBack[T float](dx, dw, dy, x, w []T, eps float64) {
	h := len(w)
	for i := 0; i+h <= len(x); i += h {
		rmsRowBack(dx[i:i+h], dw, dy[i:i+h], x[i:i+h], w, eps)
	}
}

func rmsRowBack[T float](dx, dw, dy, x, w []T, eps float64) {
	inv := rmsInverse(x, eps)
	mean := dot3(w, dy, x) * inv / T(len(x))
	normBackRow(dx, dw, dy, x, w, inv, inv*inv*mean)
}
