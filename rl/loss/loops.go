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
	fill    func(dst []float32, v float32)
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
		for t, v := range s {
			dst[t] = float64(v)
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

// fillLoop sets every element.
func fillLoop[T Float](dst []T, v T) {
	if d, ok := any(dst).([]float32); ok && wide != nil {
		wide.fill(d, float32(v))
		return
	}
	for t := range dst {
		dst[t] = v
	}
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
		sum += d
		if d < least {
			least = d
		}
		if d > greatest {
			greatest = d
		}
	}
	return sum, least, greatest
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

// windowLoop writes −A·v(r) and −A·g(r).
func windowLoop(w *window, ratio, advantages, loss, coef []float64) {
	if wide != nil {
		wide.window(*w, ratio, advantages, loss, coef)
		return
	}
	advantages, loss, coef = advantages[:len(ratio)], loss[:len(ratio)], coef[:len(ratio)]
	for t, r := range ratio {
		a := advantages[t]
		p := &w.positive
		if a < 0 {
			p = &w.negative
		}
		v, g := r, r
		if r < p.lo {
			v, g = p.lossLo, p.coefLo
		} else if r > p.hi {
			v, g = p.lossHi, p.coefHi
		}
		loss[t], coef[t] = -a*v, -a*g
	}
}

// outside counts the ratios out of bounds by the sign of the advantage and side, and those on which
// the dual clip acts. A = 0 is left out.
type outside struct{ positiveAbove, positiveBelow, negativeAbove, negativeBelow, dual float64 }

func (o *outside) add(p outside, n float64) {
	o.positiveAbove += n * p.positiveAbove
	o.positiveBelow += n * p.positiveBelow
	o.negativeAbove += n * p.negativeAbove
	o.negativeBelow += n * p.negativeBelow
	o.dual += n * p.dual
}

// outsideLoop counts.
func outsideLoop(ratio, advantages []float64, b Bounds) (o outside) {
	if wide != nil {
		return wide.outside(ratio, advantages, b)
	}
	for t, r := range ratio {
		if r >= b.Low && r <= b.High {
			continue // by far the most
		}
		o.add(b.of(r, advantages[t]), 1)
	}
	return o
}

// of counts one ratio.
func (b Bounds) of(r, advantage float64) (o outside) {
	switch {
	case advantage > 0 && r > b.High:
		o.positiveAbove = 1
	case advantage > 0 && r < b.Low:
		o.positiveBelow = 1
	case advantage < 0 && r > b.High:
		o.negativeAbove = 1
	case advantage < 0 && r < b.Low:
		o.negativeBelow = 1
	}
	if b.Dual > 0 && advantage < 0 && r > b.Dual {
		o.dual = 1
	}
	return o
}

// sigmoidLoop is SAPO's gate; scratch is overwritten.
func sigmoidLoop(p SAPO, ratio, advantages, scratch, loss, coef []float64) {
	if wide != nil {
		wide.sigmoid(p, ratio, advantages, loss, coef)
		return
	}
	gatePos, gateNeg := 4/p.TauPositive, 4/p.TauNegative
	for t, r := range ratio {
		tau := p.TauPositive
		if advantages[t] <= 0 {
			tau = p.TauNegative
		}
		scratch[t] = tau * (1 - r)
	}
	expLoop(scratch, scratch, expLimit)
	for t, r := range ratio {
		a, e := advantages[t], scratch[t]
		gate := gatePos
		if a <= 0 {
			gate = gateNeg
		}
		sigma := 1 / (1 + e)
		loss[t] = -a * gate * sigma
		coef[t] = -a * (4 * sigma * (e * sigma) * r)
	}
}

// valueLoop is the critic's clipped square.
func valueLoop(v, old, ret []float64, width, half float64, loss, coef []float64) {
	if wide != nil {
		wide.value(v, old, ret, width, half, loss, coef)
		return
	}
	for t, x := range v {
		d := x - ret[t]
		c := min(max(x, old[t]-width), old[t]+width) - ret[t]
		if d*d >= c*c {
			loss[t], coef[t] = half*d*d, 2*half*d
		} else {
			loss[t], coef[t] = half*c*c, 0
		}
	}
}

// k3Loop is k3 and its derivative of every Δ; delta may not be value or gradient.
func k3Loop(delta, value, gradient []float64) {
	if wide != nil {
		wide.k3(delta, value, gradient)
		return
	}
	for t, d := range delta {
		gradient[t] = -d
	}
	expLoop(value, gradient, LogRatioClamp)
	for t, d := range delta {
		value[t], gradient[t] = k3(-d, value[t]-1)
	}
}

// maskLoop sums a mask and joins its bits, which tells whether it holds anything but 0 and 1.
func maskLoop(mask []int32) (sum, or int32) {
	if wide != nil {
		return wide.mask(mask)
	}
	for _, m := range mask {
		sum += m
		or |= m
	}
	return sum, or
}

// runLoop is how many entries from the first on have the given value.
func runLoop(mask []int32, value int32) int {
	if wide != nil {
		return wide.run(mask, value)
	}
	for t, m := range mask {
		if m != value {
			return t
		}
	}
	return len(mask)
}
