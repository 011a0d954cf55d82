//go:build goexperiment.simd && amd64

package loss

import (
	"math"
	"simd/archsimd"
)

// The loops of loops.go with 256-bit registers, four float64 each, for builds with GOEXPERIMENT=simd
// on processors with AVX2 and FMA. A block's slices are cut from buffers of BlockSize, a multiple of
// four. So loops that only map may process the whole last register: its lanes beyond the block are never
// read. Loops that sum add the tail one by one.

type vec = archsimd.Float64x4

func init() {
	if !archsimd.X86.AVX2() || !archsimd.X86.FMA() {
		return
	}
	wide = &loops{
		widen: widenV, narrow: narrowV, total: totalV, exp: expV, sub: subV, sum: sumV, max: maxV, scale: scaleV,
		mul: mulV, add: addV, window: windowV, outside: outsideV, sigmoid: sigmoidV, value: valueV, k3: k3V,
		mask: maskV, run: runV,
		fillTotal: fillTotalV, abs: absV, square: squareV,
	}
}

func spread4(x float64) vec { return archsimd.BroadcastFloat64x4(x) }

// load and store take four values from i on; the index keeps bounds checks to one.
func load(s []float64, i int) vec { return archsimd.LoadFloat64x4((*[4]float64)(s[i : i+4])) }

func store(v vec, s []float64, i int) { v.Store((*[4]float64)(s[i : i+4])) }

// full returns s extended to the end of its last register.
func full(s []float64) []float64 { return s[:(len(s)+3)&^3] }

// lanes lie in memory at register width: making them from scalars between vector instructions would
// mix two encodings, which costs tens of cycles each time.
type lanes = [4]float64

func lanesOf(x float64) lanes { return lanes{x, x, x, x} }

var (
	kLog2e, kRound         = lanesOf(log2e), lanesOf(expRound)
	kLn2Hi, kLn2Lo         = lanesOf(-ln2Hi), lanesOf(-ln2Lo)
	kOne, kFour            = lanesOf(1), lanesOf(4)
	kC2, kC3, kC4, kC5     = lanesOf(c2), lanesOf(c3), lanesOf(c4), lanesOf(c5)
	kC6, kC7, kC8, kC9     = lanesOf(c6), lanesOf(c7), lanesOf(c8), lanesOf(c9)
	kC10, kC11, kC12, kC13 = lanesOf(c10), lanesOf(c11), lanesOf(c12), lanesOf(c13)
)

func constant(l *lanes) vec { return archsimd.LoadFloat64x4(l) }

// total adds the lanes in a fixed order. It ends the use of wide registers: scalar code follows.
func total(v vec) float64 {
	var a lanes
	v.Store(&a)
	archsimd.ClearAVXUpperBits()
	return (a[0] + a[2]) + (a[1] + a[3])
}

func widen4(s []float32, i int) vec {
	return archsimd.LoadFloat32x4((*[4]float32)(s[i : i+4])).ConvertToFloat64()
}

func widenV(dst []float64, src []float32) {
	n := len(src)
	dst = dst[:n]
	i := 0
	for ; i+8 <= n; i += 8 {
		store(widen4(src, i), dst, i)
		store(widen4(src, i+4), dst, i+4)
	}
	archsimd.ClearAVXUpperBits()
	for ; i < n; i++ {
		dst[i] = float64(src[i])
	}
}

func narrowV(dst []float32, src []float64, scale float64) {
	for i := narrowRegisters(dst, src, scale); i < len(src); i++ {
		dst[i] = float32(src[i] * scale)
	}
}

//go:noinline
func narrowRegisters(dst []float32, src []float64, scale float64) (i int) {
	n := len(src)
	dst = dst[:n]
	sv := spread4(scale)
	for ; i+4 <= n; i += 4 {
		load(src, i).Mul(sv).ConvertToFloat32().Store((*[4]float32)(dst[i : i+4]))
	}
	archsimd.ClearAVXUpperBits()
	return i
}

func subV(dst, a, b []float64) (sum, least, greatest float64) {
	n := len(dst)
	a, b = a[:n], b[:n]
	s, lo, hi := vec{}, spread4(math.Inf(1)), spread4(math.Inf(-1))
	i := 0
	for ; i+4 <= n; i += 4 {
		d := load(a, i).Sub(load(b, i))
		store(d, dst, i)
		s, lo, hi = s.Add(d), lo.Min(d), hi.Max(d)
	}
	var los, his lanes
	lo.Store(&los)
	hi.Store(&his)
	sum = total(s)
	least, greatest = min(los[0], los[1], los[2], los[3]), max(his[0], his[1], his[2], his[3])
	for ; i < n; i++ {
		d := a[i] - b[i]
		dst[i] = d
		sum, least, greatest = sum+d, min(least, d), max(greatest, d)
	}
	return sum, least, greatest
}

func sumV(x []float64) float64 {
	var s0, s1 vec
	n, i := len(x), 0
	for ; i+8 <= n; i += 8 {
		s0, s1 = s0.Add(load(x, i)), s1.Add(load(x, i+4))
	}
	s := total(s0.Add(s1))
	for ; i < n; i++ {
		s += x[i]
	}
	return s
}

func maxV(x []float64) float64 {
	m := spread4(math.Inf(-1))
	n, i := len(x), 0
	for ; i+4 <= n; i += 4 {
		m = m.Max(load(x, i))
	}
	var a lanes
	m.Store(&a)
	archsimd.ClearAVXUpperBits()
	top := max(a[0], a[1], a[2], a[3])
	for ; i < n; i++ {
		top = max(top, x[i])
	}
	return top
}

func scaleV(x []float64, s float64) {
	x = full(x)
	sv := spread4(s)
	for i := 0; i+4 <= len(x); i += 4 {
		store(load(x, i).Mul(sv), x, i)
	}
	archsimd.ClearAVXUpperBits()
}

func mulV(dst, x, y []float64) {
	dst = full(dst)
	x, y = x[:len(dst)], y[:len(dst)]
	for i := 0; i+4 <= len(dst); i += 4 {
		store(load(x, i).Mul(load(y, i)), dst, i)
	}
	archsimd.ClearAVXUpperBits()
}

func addV(dst, x []float64) {
	dst = full(dst)
	x = x[:len(dst)]
	for i := 0; i+4 <= len(dst); i += 4 {
		store(load(dst, i).Add(load(x, i)), dst, i)
	}
	archsimd.ClearAVXUpperBits()
}

func windowV(w window, ratio, advantages, loss, coef []float64) {
	ratio = full(ratio)
	n := len(ratio)
	advantages, loss, coef = advantages[:n], loss[:n], coef[:n]
	pos, neg := &w.positive, &w.negative
	pLo, pHi, nLo, nHi := spread4(pos.lo), spread4(pos.hi), spread4(neg.lo), spread4(neg.hi)
	pLossLo, pLossHi := spread4(pos.lossLo), spread4(pos.lossHi)
	nLossLo, nLossHi := spread4(neg.lossLo), spread4(neg.lossHi)
	pCoefLo, pCoefHi := spread4(pos.coefLo), spread4(pos.coefHi)
	nCoefLo, nCoefHi := spread4(neg.coefLo), spread4(neg.coefHi)
	var zero vec
	for i := 0; i+4 <= n; i += 4 {
		r, a := load(ratio, i), load(advantages, i)
		minus := a.Less(zero)
		below, above := r.Less(nLo.Merge(pLo, minus)), r.Greater(nHi.Merge(pHi, minus))
		v := nLossHi.Merge(pLossHi, minus).Merge(nLossLo.Merge(pLossLo, minus).Merge(r, below), above)
		g := nCoefHi.Merge(pCoefHi, minus).Merge(nCoefLo.Merge(pCoefLo, minus).Merge(r, below), above)
		a = zero.Sub(a)
		store(a.Mul(v), loss, i)
		store(a.Mul(g), coef, i)
	}
	archsimd.ClearAVXUpperBits()
}

func outsideV(ratio, advantages []float64, b Bounds) (o outside) {
	counts, i := outsideRegisters(ratio, advantages, b)
	for ; i < len(ratio); i++ {
		o.add(b.classify(ratio[i], advantages[i]), 1)
	}
	// A sum of whole numbers does not depend on their order.
	for k := range 4 {
		o.add(outside{counts[0][k], counts[1][k], counts[2][k], counts[3][k], counts[4][k]}, 1)
	}
	return o
}

// outsideRegisters counts in whole registers, up to i. The tail is counted elsewhere so that no scalars are live
// across this loop: the compiler would reload them inside it, in the other encoding.
//
//go:noinline
func outsideRegisters(ratio, advantages []float64, b Bounds) (counts [5]lanes, i int) {
	n := len(ratio)
	advantages = advantages[:n]
	low, high, dual := spread4(b.Low), spread4(b.High), spread4(b.Dual)
	if b.Dual <= 0 {
		dual = spread4(math.Inf(1))
	}
	one := constant(&kOne)
	var zero, pa, pb, na, nb, nd vec
	for ; i+4 <= n; i += 4 {
		r, a := load(ratio, i), load(advantages, i)
		plus, minus := one.Masked(a.Greater(zero)), one.Masked(a.Less(zero))
		above, below := r.Greater(high), r.Less(low)
		pa, pb = pa.Add(plus.Masked(above)), pb.Add(plus.Masked(below))
		na, nb = na.Add(minus.Masked(above)), nb.Add(minus.Masked(below))
		nd = nd.Add(minus.Masked(r.Greater(dual)))
	}
	pa.Store(&counts[0])
	pb.Store(&counts[1])
	na.Store(&counts[2])
	nb.Store(&counts[3])
	nd.Store(&counts[4])
	archsimd.ClearAVXUpperBits()
	return counts, i
}

func sigmoidV(p SAPO, ratio, advantages, loss, coef []float64) {
	ratio = full(ratio)
	n := len(ratio)
	advantages, loss, coef = advantages[:n], loss[:n], coef[:n]
	tauPos, tauNeg := spread4(p.TauPositive), spread4(p.TauNegative)
	gatePos, gateNeg := spread4(4/p.TauPositive), spread4(4/p.TauNegative)
	limit, least := spread4(expLimit), spread4(-expLimit)
	var zero vec
	for i := 0; i+4 <= n; i += 4 {
		r, a := load(ratio, i), load(advantages, i)
		plus := a.Greater(zero)
		e := exp4(tauPos.Merge(tauNeg, plus).Mul(constant(&kOne).Sub(r)).Min(limit).Max(least))
		sigma := constant(&kOne).Div(constant(&kOne).Add(e))
		a = zero.Sub(a)
		store(a.Mul(gatePos.Merge(gateNeg, plus)).Mul(sigma), loss, i)
		store(a.Mul(constant(&kFour).Mul(sigma).Mul(e.Mul(sigma)).Mul(r)), coef, i)
	}
	archsimd.ClearAVXUpperBits()
}

func valueV(v, old, ret []float64, width, half float64, loss, coef []float64) {
	v = full(v)
	n := len(v)
	old, ret, loss, coef = old[:n], ret[:n], loss[:n], coef[:n]
	wv, hv, twice := spread4(width), spread4(half), spread4(2*half)
	var zero vec
	for i := 0; i+4 <= n; i += 4 {
		x, o, y := load(v, i), load(old, i), load(ret, i)
		d := x.Sub(y)
		c := x.Max(o.Sub(wv)).Min(o.Add(wv)).Sub(y)
		dd, cc := d.Mul(d), c.Mul(c)
		free := dd.GreaterEqual(cc)
		store(hv.Mul(dd.Merge(cc, free)), loss, i)
		store(twice.Mul(d).Merge(zero, free), coef, i)
	}
	archsimd.ClearAVXUpperBits()
}

func k3V(delta, value, gradient []float64) {
	delta = full(delta)
	n := len(delta)
	value, gradient = value[:n], gradient[:n]
	hi, lo, top := spread4(LogRatioClamp), spread4(-LogRatioClamp), spread4(k3Clamp)
	var zero vec
	for i := 0; i+4 <= n; i += 4 {
		x := zero.Sub(load(delta, i))
		c := x.Min(hi).Max(lo)
		grown := exp4(c).Sub(constant(&kOne))
		v := grown.Sub(c)
		store(v.Min(top), value, i)
		store(zero.Sub(grown).Masked(c.Equal(x).And(v.LessEqual(top))), gradient, i)
	}
	archsimd.ClearAVXUpperBits()
}
