//go:build goexperiment.simd && amd64

package loss

import (
	"math"
	"simd/archsimd"
)

// The loops of runs.go in wide registers: eight float32 read at a time, sums of four float64. A run may have any
// length, so each loop adds its tail one by one, in another function, so that no scalars are live across the loop.

type vec8 = archsimd.Float32x8

func load8(s []float32, i int) vec8 { return archsimd.LoadFloat32x8((*[8]float32)(s[i : i+8])) }

func store8(v vec8, s []float32, i int) { v.Store((*[8]float32)(s[i : i+8])) }

func totalV(x []float32) float64 {
	s, i := totalRegisters(x)
	for ; i < len(x); i++ {
		s += float64(x[i])
	}
	return s
}

//go:noinline
func totalRegisters(x []float32) (sum float64, i int) {
	var s0, s1, s2, s3 vec
	n := len(x)
	for ; i+16 <= n; i += 16 {
		s0, s1 = s0.Add(widen4(x, i)), s1.Add(widen4(x, i+4))
		s2, s3 = s2.Add(widen4(x, i+8)), s3.Add(widen4(x, i+12))
	}
	return total(s0.Add(s1).Add(s2.Add(s3))), i
}

func fillTotalV(dst []float32, v float32, x []float32) float64 {
	s, i := fillTotalRegisters(dst, v, x)
	for ; i < len(x); i++ {
		dst[i] = v
		s += float64(x[i])
	}
	return s
}

//go:noinline
func fillTotalRegisters(dst []float32, v float32, x []float32) (sum float64, i int) {
	f := archsimd.BroadcastFloat32x8(v)
	var s0, s1, s2, s3 vec
	n := len(x)
	dst = dst[:n]
	for ; i+16 <= n; i += 16 {
		s0, s1 = s0.Add(widen4(x, i)), s1.Add(widen4(x, i+4))
		s2, s3 = s2.Add(widen4(x, i+8)), s3.Add(widen4(x, i+12))
		store8(f, dst, i)
		store8(f, dst, i+8)
	}
	return total(s0.Add(s1).Add(s2.Add(s3))), i
}

func absV(dst, x, y []float32, base, slope float64) float64 {
	up, down, level := float32(base+slope), float32(base-slope), float32(base)
	s, i := absRegisters(dst, x, y, up, down, level)
	for ; i < len(x); i++ {
		s += math.Abs(float64(x[i]) - float64(y[i]))
		switch {
		case x[i] > y[i]:
			dst[i] = up
		case x[i] < y[i]:
			dst[i] = down
		default:
			dst[i] = level
		}
	}
	return s
}

// absRegisters decides signs in float32, which compares exactly, and subtracts in float64.
//
//go:noinline
func absRegisters(dst, x, y []float32, up, down, level float32) (sum float64, i int) {
	rise, fall := archsimd.BroadcastFloat32x8(up), archsimd.BroadcastFloat32x8(down)
	flat := archsimd.BroadcastFloat32x8(level)
	size := archsimd.BroadcastInt64x4(math.MaxInt64)
	var s0, s1 vec
	n := len(x)
	dst, y = dst[:n], y[:n]
	for ; i+8 <= n; i += 8 {
		d0, d1 := widen4(x, i).Sub(widen4(y, i)), widen4(x, i+4).Sub(widen4(y, i+4))
		s0 = s0.Add(d0.AsInt64x4().And(size).AsFloat64x4())
		s1 = s1.Add(d1.AsInt64x4().And(size).AsFloat64x4())
		a, b := load8(x, i), load8(y, i)
		store8(rise.Merge(fall.Merge(flat, a.Less(b)), a.Greater(b)), dst, i)
	}
	return total(s0.Add(s1)), i
}

func squareV(dst, x, y []float32, base, slope float64) float64 {
	s, i := squareRegisters(dst, x, y, base, slope)
	for ; i < len(x); i++ {
		d := float64(x[i]) - float64(y[i])
		s += d * d
		dst[i] = float32(base + slope*d)
	}
	return s
}

//go:noinline
func squareRegisters(dst, x, y []float32, base, slope float64) (sum float64, i int) {
	at, times := spread4(base), spread4(slope)
	var s0, s1 vec
	n := len(x)
	dst, y = dst[:n], y[:n]
	for ; i+8 <= n; i += 8 {
		d0, d1 := widen4(x, i).Sub(widen4(y, i)), widen4(x, i+4).Sub(widen4(y, i+4))
		s0, s1 = d0.MulAdd(d0, s0), d1.MulAdd(d1, s1)
		d0.MulAdd(times, at).ConvertToFloat32().Store((*[4]float32)(dst[i : i+4]))
		d1.MulAdd(times, at).ConvertToFloat32().Store((*[4]float32)(dst[i+4 : i+8]))
	}
	return total(s0.Add(s1)), i
}
