package loss

import "math"

// expLoop is exp of src clamped to ±limit.
func expLoop(dst, src []float64, limit float64) {
	if wide != nil {
		wide.exp(dst, src, limit)
		return
	}
	for t, x := range src {
		dst[t] = fastExp(min(max(x, -limit), limit))
	}
}

// fastExp is eˣ for |x| ≤ 700 within 2 units in the last place: x = k·ln 2 + r with |r| ≤ ln 2 / 2,
// Taylor's polynomial of degree 13 for eʳ, then k added to the exponent.
func fastExp(x float64) float64 {
	k := x*log2e + expRound
	bits := math.Float64bits(k) << 52
	k -= expRound
	r := x - k*ln2Hi
	r -= k * ln2Lo
	r2 := r * r
	r4 := r2 * r2
	p0 := 1 + r + r2*(c2+c3*r)
	p1 := c4 + c5*r + r2*(c6+c7*r)
	p2 := c8 + c9*r + r2*(c10+c11*r)
	p := p0 + r4*(p1+r4*(p2+r4*(c12+c13*r)))
	return math.Float64frombits(math.Float64bits(p) + bits)
}

const (
	log2e    = 1.44269504088896340735992468100189214
	expRound = 1.5 * (1 << 52) // adding it rounds to the nearest integer, which then stands in the low bits
	ln2Hi    = 6.93147180369123816490e-01
	ln2Lo    = 1.90821492927058770002e-10

	c2  = 1.0 / 2
	c3  = c2 / 3
	c4  = c3 / 4
	c5  = c4 / 5
	c6  = c5 / 6
	c7  = c6 / 7
	c8  = c7 / 8
	c9  = c8 / 9
	c10 = c9 / 10
	c11 = c10 / 11
	c12 = c11 / 12
	c13 = c12 / 13
)

// expLimit is within where fastExp is exact; 1/(1+e to it) is 0 for all purposes.
const expLimit = 300
