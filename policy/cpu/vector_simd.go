//go:build goexperiment.simd && amd64

package cpu

import (
	"math"
	"simd/archsimd"

	"github.com/ropewalk/ropewalk/rl/optimizer"
)

// The loops of vector.go with 256-bit registers, for builds with GOEXPERIMENT=simd on processors with AVX2 and FMA.
// Tails shorter than a register go through masked loads and stores, so that every element meets the same
// arithmetic wherever it lies in its row.

type vec = archsimd.Float32x8

func init() {
	if !archsimd.X86.AVX2() || !archsimd.X86.FMA() {
		return
	}
	fast = &loops{
		dot: dotV, dot3: dot3V, scaleMul: scaleMulV, normBack: normBackV, addTo: addToV, axpy: axpyV, scale: scaleV,
		mulShifted: mulShiftedV, maxOf: maxOfV, expSum: expSumV, temper: temperV,
		swiglu: swigluV, swigluBack: swigluBackV,
		rotate: rotateV, affineMul: affineMulV, adam: adamV, squares: squaresV,
	}
}

func spread(x float32) vec { return archsimd.BroadcastFloat32x8(x) }

func load(s []float32) vec { return archsimd.LoadFloat32x8Slice(s) }

// lanes are constants that lie in memory at register width: making them from scalars between vector
// instructions would mix two encodings, which costs tens of cycles each time.
type lanes = [8]float32

func repeat(x float32) (l lanes) {
	for i := range l {
		l[i] = x
	}
	return l
}

var (
	kOne, kLow, kHigh, kLog2e = repeat(1), repeat(expLow), repeat(expHigh), repeat(log2e)
	kLn2Hi, kLn2Lo            = repeat(-ln2Hi), repeat(-ln2Lo)
	kC2, kC3, kC4, kC5, kC6   = repeat(expC2), repeat(expC3), repeat(expC4), repeat(expC5), repeat(expC6)
	kBias                     = [8]int32{127, 127, 127, 127, 127, 127, 127, 127}
)

func constant(l *lanes) vec { return archsimd.LoadFloat32x8(l) }

// total adds the lanes pairwise, in a fixed order. It ends the use of wide registers: scalar code follows.
func total(v vec) float32 {
	var a lanes
	v.Store(&a)
	archsimd.ClearAVXUpperBits()
	return ((a[0] + a[4]) + (a[2] + a[6])) + ((a[1] + a[5]) + (a[3] + a[7]))
}

// expV is exp32 on eight lanes: the same polynomial with fused multiply-adds.
func expV(x vec) vec {
	k := expPower(x)
	return expScale(expRest(x, k), k).AsInt32x8().And(x.GreaterEqual(constant(&kLow)).ToInt32x8()).AsFloat32x8()
}

// expPower is the power of two nearest to eˣ, as a whole number; x is clamped to where it exists.
func expPower(x vec) vec {
	return x.Min(constant(&kHigh)).Max(constant(&kLow)).Mul(constant(&kLog2e)).RoundToEven()
}

// expRest is e to the rest of x after expPower.
func expRest(x, k vec) vec {
	x = x.Min(constant(&kHigh)).Max(constant(&kLow))
	r := k.MulAdd(constant(&kLn2Lo), k.MulAdd(constant(&kLn2Hi), x))
	p := constant(&kC6).MulAdd(r, constant(&kC5)).MulAdd(r, constant(&kC4))
	p = p.MulAdd(r, constant(&kC3)).MulAdd(r, constant(&kC2))
	return p.MulAdd(r.Mul(r), r).Add(constant(&kOne))
}

// expScale is p·2ᵏ.
func expScale(p, k vec) vec {
	return p.Mul(k.ConvertToInt32().Add(archsimd.LoadInt32x8(&kBias)).ShiftAllLeft(23).AsFloat32x8())
}

func dotV(a, b []float32) float32 {
	b = b[:len(a)]
	var s0, s1 vec
	for len(a) >= 16 {
		s0 = load(a).MulAdd(load(b), s0)
		s1 = load(a[8:]).MulAdd(load(b[8:]), s1)
		a, b = a[16:], b[16:]
	}
	if len(a) >= 8 {
		s0 = load(a).MulAdd(load(b), s0)
		a, b = a[8:], b[8:]
	}
	if len(a) > 0 {
		s1 = archsimd.LoadFloat32x8SlicePart(a).MulAdd(archsimd.LoadFloat32x8SlicePart(b), s1)
	}
	return total(s0.Add(s1))
}

func dot3V(a, b, c []float32) float32 {
	b, c = b[:len(a)], c[:len(a)]
	var s0, s1 vec
	for len(a) >= 16 {
		s0 = load(a).Mul(load(b)).MulAdd(load(c), s0)
		s1 = load(a[8:]).Mul(load(b[8:])).MulAdd(load(c[8:]), s1)
		a, b, c = a[16:], b[16:], c[16:]
	}
	for len(a) > 0 {
		x, y := archsimd.LoadFloat32x8SlicePart(a), archsimd.LoadFloat32x8SlicePart(b)
		z := archsimd.LoadFloat32x8SlicePart(c)
		s0 = x.Mul(y).MulAdd(z, s0)
		n := min(8, len(a))
		a, b, c = a[n:], b[n:], c[n:]
	}
	return total(s0.Add(s1))
}

func scaleMulV(y, x, w []float32, s float32) {
	x, w = x[:len(y)], w[:len(y)]
	sv := spread(s)
	for len(y) >= 8 {
		load(x).Mul(sv).Mul(load(w)).StoreSlice(y)
		y, x, w = y[8:], x[8:], w[8:]
	}
	if len(y) > 0 {
		archsimd.LoadFloat32x8SlicePart(x).Mul(sv).Mul(archsimd.LoadFloat32x8SlicePart(w)).StoreSlicePart(y)
	}
	archsimd.ClearAVXUpperBits()
}

func normBackV(dx, dw, dy, x, w []float32, inv, c float32) {
	dw, dy, x, w = dw[:len(dx)], dy[:len(dx)], x[:len(dx)], w[:len(dx)]
	iv, cv := spread(inv), spread(-c)
	for len(dx) >= 8 {
		d, xi := load(dy).Mul(iv), load(x)
		d.MulAdd(xi, load(dw)).StoreSlice(dw)
		d.MulAdd(load(w), xi.MulAdd(cv, load(dx))).StoreSlice(dx)
		dx, dw, dy, x, w = dx[8:], dw[8:], dy[8:], x[8:], w[8:]
	}
	if len(dx) > 0 {
		d, xi := archsimd.LoadFloat32x8SlicePart(dy).Mul(iv), archsimd.LoadFloat32x8SlicePart(x)
		d.MulAdd(xi, archsimd.LoadFloat32x8SlicePart(dw)).StoreSlicePart(dw)
		d.MulAdd(
			archsimd.LoadFloat32x8SlicePart(w), xi.MulAdd(cv, archsimd.LoadFloat32x8SlicePart(dx)),
		).StoreSlicePart(dx)
	}
	archsimd.ClearAVXUpperBits()
}

func addToV(y, x []float32) {
	x = x[:len(y)]
	for len(y) >= 8 {
		load(y).Add(load(x)).StoreSlice(y)
		y, x = y[8:], x[8:]
	}
	if len(y) > 0 {
		archsimd.LoadFloat32x8SlicePart(y).Add(archsimd.LoadFloat32x8SlicePart(x)).StoreSlicePart(y)
	}
	archsimd.ClearAVXUpperBits()
}

func axpyV(y, x []float32, s float32) {
	x = x[:len(y)]
	sv := spread(s)
	for len(y) >= 8 {
		load(x).MulAdd(sv, load(y)).StoreSlice(y)
		y, x = y[8:], x[8:]
	}
	if len(y) > 0 {
		archsimd.LoadFloat32x8SlicePart(x).MulAdd(sv, archsimd.LoadFloat32x8SlicePart(y)).StoreSlicePart(y)
	}
	archsimd.ClearAVXUpperBits()
}

func scaleV(x []float32, s float32) {
	sv := spread(s)
	for len(x) >= 8 {
		load(x).Mul(sv).StoreSlice(x)
		x = x[8:]
	}
	if len(x) > 0 {
		archsimd.LoadFloat32x8SlicePart(x).Mul(sv).StoreSlicePart(x)
	}
	archsimd.ClearAVXUpperBits()
}

func mulShiftedV(y, p []float32, shift float32) {
	p = p[:len(y)]
	sv := spread(shift)
	for len(y) >= 8 {
		load(y).Sub(sv).Mul(load(p)).StoreSlice(y)
		y, p = y[8:], p[8:]
	}
	if len(y) > 0 {
		archsimd.LoadFloat32x8SlicePart(y).Sub(sv).Mul(archsimd.LoadFloat32x8SlicePart(p)).StoreSlicePart(y)
	}
	archsimd.ClearAVXUpperBits()
}

func maxOfV(x []float32) float32 {
	m := x[0]
	if len(x) >= 8 {
		mv := load(x)
		for x = x[8:]; len(x) >= 8; x = x[8:] {
			mv = mv.Max(load(x))
		}
		var a lanes
		mv.Store(&a)
		archsimd.ClearAVXUpperBits()
		m = max(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7])
	}
	for _, v := range x {
		if v > m {
			m = v
		}
	}
	return m
}

func expSumV(x []float32, shift float32) float32 {
	sv := spread(shift)
	var s vec
	for len(x) >= 8 {
		e := expV(load(x).Sub(sv))
		e.StoreSlice(x)
		s = s.Add(e)
		x = x[8:]
	}
	if len(x) > 0 {
		expV(archsimd.LoadFloat32x8SlicePart(x).Sub(sv)).StoreSlicePart(x)
		s = s.Add(archsimd.LoadFloat32x8SlicePart(x))
	}
	return total(s)
}

// temperV adds up eight lanes in float32 and, every eight registers, in float64, so that long rows stay exact.
func temperV(z, e []float32, m, inv float32) (sum, weighted float64) {
	e = e[:len(z)]
	mv, iv := spread(m), spread(inv)
	var sums, weights archsimd.Float64x4
	for len(z) > 0 {
		var s, w vec
		for i := 0; i < 8 && len(z) >= 8; i++ {
			v := load(z).Sub(mv).Mul(iv)
			p := expV(v)
			v.StoreSlice(z)
			p.StoreSlice(e)
			s, w = s.Add(p), p.MulAdd(v, w)
			z, e = z[8:], e[8:]
		}
		if len(z) < 8 && len(z) > 0 {
			v := archsimd.LoadFloat32x8SlicePart(z).Sub(mv).Mul(iv)
			v.StoreSlicePart(z)
			expV(v).StoreSlicePart(e)
			p := archsimd.LoadFloat32x8SlicePart(e) // the lanes beyond the row are 0
			s, w = s.Add(p), p.MulAdd(v, w)
			z = nil
		}
		sums = sums.Add(doubles(s))
		weights = weights.Add(doubles(w))
	}
	return totalDoubles(sums, weights)
}

// doubles adds the two halves in float64.
func doubles(v vec) archsimd.Float64x4 {
	return v.GetLo().ConvertToFloat64().Add(v.GetHi().ConvertToFloat64())
}

func totalDoubles(x, y archsimd.Float64x4) (float64, float64) {
	var a, b [4]float64
	x.Store(&a)
	y.Store(&b)
	archsimd.ClearAVXUpperBits()
	return (a[0] + a[2]) + (a[1] + a[3]), (b[0] + b[2]) + (b[1] + b[3])
}

func affineMulV(z, e []float32, constant, slope float32) {
	e = e[:len(z)]
	cv, sv := spread(constant), spread(slope)
	for len(z) >= 8 {
		load(z).MulAdd(sv, cv).Mul(load(e)).StoreSlice(z)
		z, e = z[8:], e[8:]
	}
	if len(z) > 0 {
		archsimd.LoadFloat32x8SlicePart(z).MulAdd(sv, cv).Mul(archsimd.LoadFloat32x8SlicePart(e)).StoreSlicePart(z)
	}
	archsimd.ClearAVXUpperBits()
}

func sigmoidV(g vec) vec {
	var zero vec
	return constant(&kOne).Div(constant(&kOne).Add(expV(zero.Sub(g))))
}

func swigluV(h, g, u []float32) {
	g, u = g[:len(h)], u[:len(h)]
	for len(h) > 0 {
		gi, ui := archsimd.LoadFloat32x8SlicePart(g), archsimd.LoadFloat32x8SlicePart(u)
		gi.Mul(sigmoidV(gi)).Mul(ui).StoreSlicePart(h)
		n := min(8, len(h))
		h, g, u = h[n:], g[n:], u[n:]
	}
	archsimd.ClearAVXUpperBits()
}

func swigluBackV(dg, du, h, dh, g, u []float32) {
	dg, du, dh, g, u = dg[:len(h)], du[:len(h)], dh[:len(h)], g[:len(h)], u[:len(h)]
	for len(h) > 0 {
		gi, ui := archsimd.LoadFloat32x8SlicePart(g), archsimd.LoadFloat32x8SlicePart(u)
		di := archsimd.LoadFloat32x8SlicePart(dh)
		sig := sigmoidV(gi)
		silu := gi.Mul(sig)
		silu.Mul(ui).StoreSlicePart(h)
		di.Mul(ui).Mul(silu.MulAdd(constant(&kOne).Sub(sig), sig)).StoreSlicePart(dg)
		di.Mul(silu).StoreSlicePart(du)
		n := min(8, len(h))
		h, dg, du, dh, g, u = h[n:], dg[n:], du[n:], dh[n:], g[n:], u[n:]
	}
	archsimd.ClearAVXUpperBits()
}

func rotateV(x, cos, sin []float32, sign float32) {
	n := len(cos)
	a, b, sin := x[:n], x[n:2*n], sin[:n]
	sv := spread(sign)
	for len(a) > 0 {
		c, s := archsimd.LoadFloat32x8SlicePart(cos), archsimd.LoadFloat32x8SlicePart(sin).Mul(sv)
		ai, bi := archsimd.LoadFloat32x8SlicePart(a), archsimd.LoadFloat32x8SlicePart(b)
		ai.Mul(c).Sub(bi.Mul(s)).StoreSlicePart(a)
		bi.Mul(c).Add(ai.Mul(s)).StoreSlicePart(b)
		k := min(8, len(a))
		a, b, cos, sin = a[k:], b[k:], cos[k:], sin[k:]
	}
	archsimd.ClearAVXUpperBits()
}

func adamV(u optimizer.AdamWStep[float32]) optimizer.Kernel[float32] {
	return func(w, g []float32, states [][]float32, decays bool) {
		m, v, shrink := states[0][:len(w)], states[1][:len(w)], float32(1)
		if decays {
			shrink = u.Shrink
		}
		g = g[:len(w)]
		factor, b1, b2 := spread(u.Scale), spread(1-u.Beta1), spread(1-u.Beta2)
		rate, bias, eps, keep := spread(u.Rate), spread(u.Bias), spread(u.Epsilon), spread(shrink)
		var zero vec
		for len(w) > 0 {
			d := archsimd.LoadFloat32x8SlicePart(g).Mul(factor)
			mi, vi := archsimd.LoadFloat32x8SlicePart(m), archsimd.LoadFloat32x8SlicePart(v)
			mi = d.Sub(mi).MulAdd(b1, mi)
			vi = d.Mul(d).Sub(vi).MulAdd(b2, vi)
			step := rate.Mul(mi).Div(vi.Sqrt().MulAdd(bias, eps))
			archsimd.LoadFloat32x8SlicePart(w).Mul(keep).Sub(step).StoreSlicePart(w)
			mi.StoreSlicePart(m)
			vi.StoreSlicePart(v)
			zero.StoreSlicePart(g)
			n := min(8, len(w))
			w, m, v, g = w[n:], m[n:], v[n:], g[n:]
		}
		archsimd.ClearAVXUpperBits()
	}
}

// squaresV falls back to float64 products: a float32 square may overflow where its norm must not.
func squaresV(x []float32) float64 {
	var s0, s1 archsimd.Float64x4
	for len(x) >= 8 {
		v := load(x)
		lo, hi := v.GetLo().ConvertToFloat64(), v.GetHi().ConvertToFloat64()
		s0, s1 = lo.MulAdd(lo, s0), hi.MulAdd(hi, s1)
		x = x[8:]
	}
	sum, more := totalDoubles(s0, s1)
	sum += more
	for _, v := range x {
		sum = math.FMA(float64(v), float64(v), sum)
	}
	return sum
}
