package cpu

import (
	"github.com/ropewalk/ropewalk/rl/optimizer"
)

// Loops over single rows. Each has a plain form here for both element types, and some have a faster form for float32 in
// vector_simd.go. Sums use several lanes, so that additions do not wait for each other; the lanes also fix the order of
// the additions.

// loops are the faster forms for float32.
type loops struct {
	dot        func(a, b []float32) float32
	dot3       func(a, b, c []float32) float32
	scaleMul   func(y, x, w []float32, s float32)
	normBack   func(dx, dw, dy, x, w []float32, inv, c float32)
	addTo      func(y, x []float32)
	axpy       func(y, x []float32, s float32)
	scale      func(x []float32, s float32)
	mulShifted func(y, p []float32, shift float32)
	maxOf      func(x []float32) float32
	expSum     func(x []float32, shift float32) float32
	temper     func(z, e []float32, m, inv float32) (sum, weighted float64)
	swiglu     func(h, g, u []float32)
	swigluBack func(dg, du, h, dh, g, u []float32)
	rotate     func(x, cos, sin []float32, sign float32)
	affineMul  func(z, e []float32, constant, slope float32)
	adam       func(u optimizer.AdamWStep[float32]) optimizer.Kernel[float32]
	squares    func(x []float32) float64
}

// fast is nil if the build or the processor has no faster forms.
var fast *loops

const loopsAdvice = "everything else runs up to 2 times faster when built with GOEXPERIMENT=simd on a processor with " +
	"AVX2"

// loopsName names the loops in use; they determine rounding.
func loopsName() string {
	if fast != nil {
		return "avx2 loops"
	}
	return "plain loops"
}

// useFast reports whether T is float32 and there are faster forms.
func useFast[T float]() bool { return isFloat32[T]() && fast != nil }

// dot is Σ a·b.
func dot[T float](a, b []T) T {
	if useFast[T]() {
		return T(fast.dot(as[float32](a), as[float32](b)))
	}
	b = b[:len(a)]
	var s0, s1, s2, s3 T
	i := 0
	for ; i+4 <= len(a); i += 4 {
		s0 += a[i] * b[i]
		s1 += a[i+1] * b[i+1]
		s2 += a[i+2] * b[i+2]
		s3 += a[i+3] * b[i+3]
	}
	for ; i < len(a); i++ {
		s0 += a[i] * b[i]
	}
	return (s0 + s1) + (s2 + s3)
}

// dot3 is Σ a·b·c.
func dot3[T float](a, b, c []T) T {
	if useFast[T]() {
		return T(fast.dot3(as[float32](a), as[float32](b), as[float32](c)))
	}
	b, c = b[:len(a)], c[:len(a)]
	var s0, s1, s2, s3 T
	i := 0
	for ; i+4 <= len(a); i += 4 {
		s0 += a[i] * b[i] * c[i]
		s1 += a[i+1] * b[i+1] * c[i+1]
		s2 += a[i+2] * b[i+2] * c[i+2]
		s3 += a[i+3] * b[i+3] * c[i+3]
	}
	for ; i < len(a); i++ {
		s0 += a[i] * b[i] * c[i]
	}
	return (s0 + s1) + (s2 + s3)
}

// scaleMul writes y = x·w·s.
func scaleMul[T float](y, x, w []T, s T) {
	if useFast[T]() {
		fast.scaleMul(as[float32](y), as[float32](x), as[float32](w), float32(s))
		return
	}
	x, w = x[:len(y)], w[:len(y)]
	for i := range y {
		y[i] = x[i] * s * w[i]
	}
}

// normBackRow adds dw += dy·x·inv and dx += inv·w·dy − x·c.
func normBackRow[T float](dx, dw, dy, x, w []T, inv, c T) {
	if useFast[T]() {
		fast.normBack(
			as[float32](dx), as[float32](dw), as[float32](dy), as[float32](x), as[float32](w), float32(inv), float32(c),
		)
		return
	}
	dw, dy, x, w = dw[:len(dx)], dy[:len(dx)], x[:len(dx)], w[:len(dx)]
	for i := range dx {
		d := dy[i] * inv
		dw[i] += d * x[i]
		dx[i] += d*w[i] - x[i]*c
	}
}

// addTo writes y += x.
func addTo[T float](y, x []T) {
	if useFast[T]() {
		fast.addTo(as[float32](y), as[float32](x))
		return
	}
	x = x[:len(y)]
	for i := range y {
		y[i] += x[i]
	}
}

// axpy writes y += x·s.
func axpy[T float](y, x []T, s T) {
	if useFast[T]() {
		fast.axpy(as[float32](y), as[float32](x), float32(s))
		return
	}
	x = x[:len(y)]
	for i := range y {
		y[i] += x[i] * s
	}
}

// scale writes x *= s.
func scale[T float](x []T, s T) {
	if useFast[T]() {
		fast.scale(as[float32](x), float32(s))
		return
	}
	for i := range x {
		x[i] *= s
	}
}

// mulShifted writes y = p·(y − shift).
func mulShifted[T float](y, p []T, shift T) {
	if useFast[T]() {
		fast.mulShifted(as[float32](y), as[float32](p), float32(shift))
		return
	}
	p = p[:len(y)]
	for i := range y {
		y[i] = p[i] * (y[i] - shift)
	}
}

// maxOf is the greatest element; with a NaN among them it may be any of them.
func maxOf[T float](x []T) T {
	if useFast[T]() {
		return T(fast.maxOf(as[float32](x)))
	}
	m := x[0]
	for _, v := range x {
		if v > m {
			m = v
		}
	}
	return m
}

// expSum replaces each element by e^(x−shift) and returns their sum.
func expSum[T float](x []T, shift T) T {
	if useFast[T]() {
		return T(fast.expSum(as[float32](x), float32(shift)))
	}
	var s0, s1 T
	i := 0
	for ; i+2 <= len(x); i += 2 {
		a, b := expT(x[i]-shift), expT(x[i+1]-shift)
		x[i], x[i+1] = a, b
		s0 += a
		s1 += b
	}
	for ; i < len(x); i++ {
		x[i] = expT(x[i] - shift)
		s0 += x[i]
	}
	return s0 + s1
}

// temper writes z = (z − m)·inv and e = e^z, and returns Σ e and Σ e·z.
func temper[T float](z, e []T, m, inv T) (sum, weighted float64) {
	if useFast[T]() {
		return fast.temper(as[float32](z), as[float32](e), float32(m), float32(inv))
	}
	e = e[:len(z)]
	for i := range z {
		v := (z[i] - m) * inv
		p := expT(v)
		z[i], e[i] = v, p
		sum += float64(p)
		weighted += float64(p) * float64(v)
	}
	return sum, weighted
}

// affineMul writes z = e·(constant + slope·z).
func affineMul[T float](z, e []T, constant, slope T) {
	if useFast[T]() {
		fast.affineMul(as[float32](z), as[float32](e), float32(constant), float32(slope))
		return
	}
	e = e[:len(z)]
	for i := range z {
		z[i] = e[i] * (constant + slope*z[i])
	}
}

// sumSquares is Σ x² in float64.
func sumSquares[T float](x []T) float64 {
	if useFast[T]() {
		return fast.squares(as[float32](x))
	}
	var s0, s1, s2, s3 float64
	i := 0
	for ; i+4 <= len(x); i += 4 {
		a, b, c, d := float64(x[i]), float64(x[i+1]), float64(x[i+2]), float64(x[i+3])
		s0 += a * a
		s1 += b * b
		s2 += c * c
		s3 += d * d
	}
	for ; i < len(x); i++ {
		s0 += float64(x[i]) * float64(x[i])
	}
	return (s0 + s1) + (s2 + s3)
}
