//go:build goexperiment.simd && amd64

package loss

import (
	"math"
	"simd/archsimd"
)

// The loops of loops.go with 256-bit registers, four float64 each, for builds with GOEXPERIMENT=simd
// on processors with AVX2 and FMA. A tail shorter than a register goes through a copy in one, so that
// every token meets the same arithmetic wherever it lies in its block.

type vec = archsimd.Float64x4

func init() {
	if !archsimd.X86.AVX2() || !archsimd.X86.FMA() {
		return
	}
	wide = &loops{
		widen: widenV, narrow: narrowV, exp: expV, sub: subV, sum: sumV, max: maxV, scale: scaleV, mul: mulV, add: addV,
		window: windowV, outside: outsideV, sigmoid: sigmoidV, value: valueV, k3: k3V, mask: maskV,
	}
}

func spread4(x float64) vec { return archsimd.BroadcastFloat64x4(x) }

func load(s []float64) vec { return archsimd.LoadFloat64x4Slice(s) }

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

// exp4 is fastExp on four lanes, with fused multiply-adds.
func exp4(x vec) vec {
	k := x.MulAdd(constant(&kLog2e), constant(&kRound))
	bits := k.AsInt64x4().ShiftAllLeft(52)
	k = k.Sub(constant(&kRound))
	r := k.MulAdd(constant(&kLn2Lo), k.MulAdd(constant(&kLn2Hi), x))
	r2 := r.Mul(r)
	r4 := r2.Mul(r2)
	p0 := r2.MulAdd(r.MulAdd(constant(&kC3), constant(&kC2)), r.Add(constant(&kOne)))
	p1 := r2.MulAdd(r.MulAdd(constant(&kC7), constant(&kC6)), r.MulAdd(constant(&kC5), constant(&kC4)))
	p2 := r2.MulAdd(r.MulAdd(constant(&kC11), constant(&kC10)), r.MulAdd(constant(&kC9), constant(&kC8)))
	p3 := r.MulAdd(constant(&kC13), constant(&kC12))
	p := r4.MulAdd(r4.MulAdd(r4.MulAdd(p3, p2), p1), p0)
	return p.AsInt64x4().Add(bits).AsFloat64x4()
}

func widenV(dst []float64, src []float32) {
	for len(src) >= 4 {
		archsimd.LoadFloat32x4Slice(src).ConvertToFloat64().StoreSlice(dst)
		dst, src = dst[4:], src[4:]
	}
	for t, v := range src {
		dst[t] = float64(v)
	}
	archsimd.ClearAVXUpperBits()
}

func narrowV(dst []float32, src []float64) {
	for len(src) >= 4 {
		load(src).ConvertToFloat32().StoreSlice(dst)
		dst, src = dst[4:], src[4:]
	}
	for t, v := range src {
		dst[t] = float32(v)
	}
	archsimd.ClearAVXUpperBits()
}

// part loads up to four values; the lanes beyond are 0.
func part(s []float64) vec {
	if len(s) >= 4 {
		return load(s)
	}
	return archsimd.LoadFloat64x4SlicePart(s)
}

// put stores up to four values.
func put(v vec, s []float64) {
	if len(s) >= 4 {
		v.StoreSlice(s)
		return
	}
	v.StoreSlicePart(s)
}

// after is where the next register begins.
func after(s []float64) []float64 { return s[min(4, len(s)):] }

func expV(dst, src []float64, limit float64) {
	hi, lo := spread4(limit), spread4(-limit)
	for len(src) > 0 {
		put(exp4(part(src).Min(hi).Max(lo)), dst)
		dst, src = after(dst), after(src)
	}
	archsimd.ClearAVXUpperBits()
}

func subV(dst, a, b []float64) (sum, least, greatest float64) {
	s, lo, hi := vec{}, spread4(math.Inf(1)), spread4(math.Inf(-1))
	for len(dst) >= 4 {
		d := load(a).Sub(load(b))
		d.StoreSlice(dst)
		s, lo, hi = s.Add(d), lo.Min(d), hi.Max(d)
		dst, a, b = dst[4:], a[4:], b[4:]
	}
	var los, his lanes
	lo.Store(&los)
	hi.Store(&his)
	sum = total(s)
	least, greatest = min(los[0], los[1], los[2], los[3]), max(his[0], his[1], his[2], his[3])
	for t := range dst {
		d := a[t] - b[t]
		dst[t] = d
		sum, least, greatest = sum+d, min(least, d), max(greatest, d)
	}
	return sum, least, greatest
}

func sumV(x []float64) float64 {
	var s0, s1 vec
	for len(x) >= 8 {
		s0, s1 = s0.Add(load(x)), s1.Add(load(x[4:]))
		x = x[8:]
	}
	for len(x) > 0 {
		s0, x = s0.Add(part(x)), after(x)
	}
	return total(s0.Add(s1))
}

func maxV(x []float64) float64 {
	m := spread4(math.Inf(-1))
	for len(x) >= 4 {
		m, x = m.Max(load(x)), x[4:]
	}
	var a lanes
	m.Store(&a)
	archsimd.ClearAVXUpperBits()
	top := max(a[0], a[1], a[2], a[3])
	for _, v := range x {
		top = max(top, v)
	}
	return top
}

func scaleV(x []float64, s float64) {
	sv := spread4(s)
	for len(x) > 0 {
		put(part(x).Mul(sv), x)
		x = after(x)
	}
	archsimd.ClearAVXUpperBits()
}

func mulV(dst, x, y []float64) {
	for len(dst) > 0 {
		put(part(x).Mul(part(y)), dst)
		dst, x, y = after(dst), after(x), after(y)
	}
	archsimd.ClearAVXUpperBits()
}

func addV(dst, x []float64) {
	for len(dst) > 0 {
		put(part(dst).Add(part(x)), dst)
		dst, x = after(dst), after(x)
	}
	archsimd.ClearAVXUpperBits()
}

func windowV(w window, ratio, advantages, loss, coef []float64) {
	pos, neg := &w.positive, &w.negative
	pLo, pHi, nLo, nHi := spread4(pos.lo), spread4(pos.hi), spread4(neg.lo), spread4(neg.hi)
	pLossLo, pLossHi, nLossLo, nLossHi := spread4(pos.lossLo), spread4(pos.lossHi), spread4(neg.lossLo), spread4(neg.lossHi)
	pCoefLo, pCoefHi, nCoefLo, nCoefHi := spread4(pos.coefLo), spread4(pos.coefHi), spread4(neg.coefLo), spread4(neg.coefHi)
	var zero vec
	for len(ratio) > 0 {
		r, a := part(ratio), part(advantages)
		minus := a.Less(zero)
		below, above := r.Less(nLo.Merge(pLo, minus)), r.Greater(nHi.Merge(pHi, minus))
		v := nLossHi.Merge(pLossHi, minus).Merge(nLossLo.Merge(pLossLo, minus).Merge(r, below), above)
		g := nCoefHi.Merge(pCoefHi, minus).Merge(nCoefLo.Merge(pCoefLo, minus).Merge(r, below), above)
		a = zero.Sub(a)
		put(a.Mul(v), loss)
		put(a.Mul(g), coef)
		ratio, advantages, loss, coef = after(ratio), after(advantages), after(loss), after(coef)
	}
	archsimd.ClearAVXUpperBits()
}

func outsideV(ratio, advantages []float64, b Bounds) (o outside) {
	low, high, dual := spread4(b.Low), spread4(b.High), spread4(b.Dual)
	if b.Dual <= 0 {
		dual = spread4(math.Inf(1))
	}
	one := constant(&kOne)
	var zero, pa, pb, na, nb, nd vec
	for len(ratio) > 0 {
		// The lanes beyond the tail have an advantage of 0 and count nowhere.
		r, a := part(ratio), part(advantages)
		plus, minus := one.Masked(a.Greater(zero)), one.Masked(a.Less(zero))
		above, below := r.Greater(high), r.Less(low)
		pa, pb = pa.Add(plus.Masked(above)), pb.Add(plus.Masked(below))
		na, nb = na.Add(minus.Masked(above)), nb.Add(minus.Masked(below))
		nd = nd.Add(minus.Masked(r.Greater(dual)))
		ratio, advantages = after(ratio), after(advantages)
	}
	return outside{total(pa), total(pb), total(na), total(nb), total(nd)}
}

func sigmoidV(p SAPO, ratio, advantages, loss, coef []float64) {
	tauPos, tauNeg := spread4(p.TauPositive), spread4(p.TauNegative)
	gatePos, gateNeg := spread4(4/p.TauPositive), spread4(4/p.TauNegative)
	limit, least := spread4(expLimit), spread4(-expLimit)
	one, four := constant(&kOne), constant(&kFour)
	var zero vec
	for len(ratio) > 0 {
		r, a := part(ratio), part(advantages)
		plus := a.Greater(zero)
		e := exp4(tauPos.Merge(tauNeg, plus).Mul(one.Sub(r)).Min(limit).Max(least))
		sigma := one.Div(one.Add(e))
		a = zero.Sub(a)
		put(a.Mul(gatePos.Merge(gateNeg, plus)).Mul(sigma), loss)
		put(a.Mul(four.Mul(sigma).Mul(e.Mul(sigma)).Mul(r)), coef)
		ratio, advantages, loss, coef = after(ratio), after(advantages), after(loss), after(coef)
	}
	archsimd.ClearAVXUpperBits()
}

func valueV(v, old, ret []float64, width, half float64, loss, coef []float64) {
	wv, hv, twice := spread4(width), spread4(half), spread4(2*half)
	var zero vec
	for len(v) > 0 {
		x, o, y := part(v), part(old), part(ret)
		d := x.Sub(y)
		c := x.Max(o.Sub(wv)).Min(o.Add(wv)).Sub(y)
		dd, cc := d.Mul(d), c.Mul(c)
		free := dd.GreaterEqual(cc)
		put(hv.Mul(dd.Merge(cc, free)), loss)
		put(twice.Mul(d).Merge(zero, free), coef)
		v, old, ret, loss, coef = after(v), after(old), after(ret), after(loss), after(coef)
	}
	archsimd.ClearAVXUpperBits()
}

func k3V(delta, value, gradient []float64) {
	hi, lo, top := spread4(LogRatioClamp), spread4(-LogRatioClamp), spread4(k3Clamp)
	one := constant(&kOne)
	var zero vec
	for len(delta) > 0 {
		x := zero.Sub(part(delta))
		c := x.Min(hi).Max(lo)
		grown := exp4(c).Sub(one)
		v := grown.Sub(c)
		put(v.Min(top), value)
		put(zero.Sub(grown).Masked(c.Equal(x).And(v.LessEqual(top))), gradient)
		delta, value, gradient = after(delta), after(value), after(gradient)
	}
	archsimd.ClearAVXUpperBits()
}

func maskV(mask []int32) (sum, or int32) {
	var s, o archsimd.Int32x8
	for len(mask) >= 8 {
		m := archsimd.LoadInt32x8Slice(mask)
		s, o = s.Add(m), o.Or(m)
		mask = mask[8:]
	}
	var ss, oo [8]int32
	s.Store(&ss)
	o.Store(&oo)
	archsimd.ClearAVXUpperBits()
	for k := range ss {
		sum += ss[k]
		or |= oo[k]
	}
	for _, m := range mask {
		sum += m
		or |= m
	}
	return sum, or
}
