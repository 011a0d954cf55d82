//go:build goexperiment.simd && amd64

package loss

import "simd/archsimd"

// The coefficients of Taylor's polynomial beyond those of exp.go.
const (
	c6  = c5 / 6
	c7  = c6 / 7
	c8  = c7 / 8
	c9  = c8 / 9
	c10 = c9 / 10
	c11 = c10 / 11
	c12 = c11 / 12
	c13 = c12 / 13
)

// exp4 is eˣ for |x| ≤ 700 on four lanes within 2 units in the last place: x = k·ln 2 + r with |r| ≤ ln 2 / 2, Taylor's
// polynomial of degree 13 for eʳ with fused multiply-adds, then k added to the exponent. Vector registers have no fast
// access to plainExp's table. The function has two parts so that each can be inlined.
func exp4(x vec) vec {
	k := x.MulAdd(constant(&kLog2e), constant(&kRound))
	return expRest(x, k.Sub(constant(&kRound))).AsInt64x4().Add(k.AsInt64x4().ShiftAllLeft(52)).AsFloat64x4()
}

// expRest is eʳ for the remainder r = x − k·ln 2.
func expRest(x, k vec) vec {
	r := k.MulAdd(constant(&kLn2Lo), k.MulAdd(constant(&kLn2Hi), x))
	r2 := r.Mul(r)
	r4 := r2.Mul(r2)
	return r4.MulAdd(r4.MulAdd(r4.MulAdd(expHigh(r), expMiddle(r, r2)), expLow(r, r2)), expFirst(r, r2))
}

func expFirst(r, r2 vec) vec {
	return r2.MulAdd(r.MulAdd(constant(&kC3), constant(&kC2)), r.Add(constant(&kOne)))
}

func expLow(r, r2 vec) vec {
	return r2.MulAdd(r.MulAdd(constant(&kC7), constant(&kC6)), r.MulAdd(constant(&kC5), constant(&kC4)))
}

func expMiddle(r, r2 vec) vec {
	return r2.MulAdd(r.MulAdd(constant(&kC11), constant(&kC10)), r.MulAdd(constant(&kC9), constant(&kC8)))
}

func expHigh(r vec) vec { return r.MulAdd(constant(&kC13), constant(&kC12)) }

func expV(dst, src []float64, limit float64) {
	src = full(src)
	dst = dst[:len(src)]
	hi, lo := spread4(limit), spread4(-limit)
	for i := 0; i+4 <= len(src); i += 4 {
		store(exp4(load(src, i).Min(hi).Max(lo)), dst, i)
	}
	archsimd.ClearAVXUpperBits()
}
