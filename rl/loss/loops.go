package loss

import "math"

// The loops over a block's tokens. Each has a plain form here and may have a wide one
// (loops_simd.go); both fix the order of their sums. A loop's slices are equally long.

// wide holds the loops of wide registers; nil where the build or the processor has none.
var wide *loops

type loops struct {
	widen   func(dst []float64, src []float32)
	narrow  func(dst []float32, src []float64, scale float64)
	total   func(x []float32) float64
	exp     func(dst, src []float64, limit float64)
	sub     func(dst, a, b []float64) (sum, least, greatest float64)
	sum     func(x []float64) float64
	max     func(x []float64) float64
	scale   func(x []float64, s float64)
	mul     func(dst, x, y []float64)
	add     func(dst, x []float64)
	window  func(w window, ratio, advantages, loss, coef []float64)
	outside func(ratio, advantages []float64, b Bounds) outside
	sigmoid func(p SAPO, ratio, advantages, loss, coef []float64)
	value   func(v, old, ret []float64, width, half float64, loss, coef []float64)
	k3      func(delta, value, gradient []float64)
	mask    func(mask []int32) (sum, or int32)
	run     func(mask []int32, value int32) int

	fillTotal   func(dst []float32, v float32, x []float32) float64
	abs, square func(dst, x, y []float32, base, slope float64) float64
}

// widenLoop copies to float64.
func widenLoop[T Float](dst []float64, src []T) {
	switch s := any(src).(type) {
	case []float64:
		copy(dst, s)
	case []float32:
		if wide != nil {
			wide.widen(dst, s)
			return
		}
		t := 0
		for ; t+4 <= len(s); t += 4 {
			x, y := s[t:t+4:t+4], dst[t:t+4:t+4]
			y[0], y[1], y[2], y[3] = float64(x[0]), float64(x[1]), float64(x[2]), float64(x[3])
		}
		for ; t < len(s); t++ {
			dst[t] = float64(s[t])
		}
	}
}

// narrowLoop copies from float64, times scale.
func narrowLoop[T Float](dst []T, src []float64, scale float64) {
	if d, ok := any(dst).([]float32); ok && wide != nil {
		wide.narrow(d, src, scale)
		return
	}
	dst = dst[:len(src)]
	for t, v := range src {
		dst[t] = T(v * scale)
	}
}

// totalLoop is Σ x, in four lanes.
func totalLoop[T Float](x []T) float64 {
	switch x := any(x).(type) {
	case []float64:
		return sumLoop(x)
	case []float32:
		if wide != nil {
			return wide.total(x)
		}
	}
	var s0, s1, s2, s3 float64
	t := 0
	for ; t+4 <= len(x); t += 4 {
		y := x[t : t+4 : t+4]
		s0, s1, s2, s3 = s0+float64(y[0]), s1+float64(y[1]), s2+float64(y[2]), s3+float64(y[3])
	}
	for ; t < len(x); t++ {
		s0 += float64(x[t])
	}
	return (s0 + s2) + (s1 + s3)
}

// subLoop is a − b, with its sum, least and greatest.
func subLoop(dst, a, b []float64) (sum, least, greatest float64) {
	if wide != nil {
		return wide.sub(dst, a, b)
	}
	a, b = a[:len(dst)], b[:len(dst)]
	least, greatest = math.Inf(1), math.Inf(-1)
	for t := range dst {
		d := a[t] - b[t]
		dst[t] = d
		if d < least {
			least = d
		}
		if d > greatest {
			greatest = d
		}
	}
	return sumLoop(dst), least, greatest
}

// sumLoop is Σ x, in four lanes.
func sumLoop(x []float64) float64 {
	if wide != nil {
		return wide.sum(x)
	}
	var s0, s1, s2, s3 float64
	t := 0
	for ; t+4 <= len(x); t += 4 {
		y := x[t : t+4 : t+4]
		s0, s1, s2, s3 = s0+y[0], s1+y[1], s2+y[2], s3+y[3]
	}
	for ; t < len(x); t++ {
		s0 += x[t]
	}
	return (s0 + s2) + (s1 + s3)
}

// maxLoop is the greatest of x, which has no NaN.
func maxLoop(x []float64) float64 {
	if wide != nil {
		return wide.max(x)
	}
	m := math.Inf(-1)
	for _, v := range x {
		if v > m {
			m = v
		}
	}
	return m
}

// scaleLoop multiplies by a constant.
func scaleLoop(x []float64, s float64) {
	if s == 1 {
		return
	}
	if wide != nil {
		wide.scale(x, s)
		return
	}
	for t := range x {
		x[t] *= s
	}
}

// mulLoop is x·y.
func mulLoop(dst, x, y []float64) {
	if wide != nil {
		wide.mul(dst, x, y)
		return
	}
	x, y = x[:len(dst)], y[:len(dst)]
	for t := range dst {
		dst[t] = x[t] * y[t]
	}
}

// addLoop adds x to dst.
func addLoop(dst, x []float64) {
	if wide != nil {
		wide.add(dst, x)
		return
	}
	x = x[:len(dst)]
	for t := range dst {
		dst[t] += x[t]
	}
}

// maskLoop sums a mask and joins its bits, which tells whether it holds anything but 0 and 1.
func maskLoop(mask []int32) (sum, or int32) {
	if wide != nil {
		return wide.mask(mask)
	}
	var other int32
	t := 0
	for ; t+4 <= len(mask); t += 4 {
		m := mask[t : t+4 : t+4]
		sum, other = sum+(m[0]+m[1]), other+(m[2]+m[3])
		or |= m[0] | m[1] | (m[2] | m[3])
	}
	for ; t < len(mask); t++ {
		sum += mask[t]
		or |= mask[t]
	}
	return sum + other, or
}

// runLoop is how many entries from the first on have the given value.
func runLoop(mask []int32, value int32) int {
	if wide != nil {
		return wide.run(mask, value)
	}
	t := 0
	for ; t+4 <= len(mask); t += 4 {
		m := mask[t : t+4 : t+4]
		if (m[0]^value)|(m[1]^value)|(m[2]^value)|(m[3]^value) != 0 {
			break
		}
	}
	for t < len(mask) && mask[t] == value {
		t++
	}
	return t
}
