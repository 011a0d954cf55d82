package loss

import "math"

// expLoop writes exp(src) with src clamped to ±limit. limit is at most 700.
func expLoop(dst, src []float64, limit float64) {
	if wide != nil {
		wide.exp(dst, src, limit)
		return
	}
	plainExp(dst, src, limit)
}

// plainExp is eˣ within 2 units in the last place: x = k·ln 2/128 + r with |r| ≤ ln 2/256, Taylor's polynomial of
// degree 5 for eʳ − 1, and 2^(k/128) from a table by the low bits of k, the others being added to the exponent (Tang
// 1989, "Table-driven implementation of the exponential function"). A call per element would cost as much as the rest.
func plainExp(dst, src []float64, limit float64) {
	dst = dst[:len(src)]
	for t, x := range src {
		if x > limit {
			x = limit
		} else if x < -limit {
			x = -limit
		}
		k := x*(expSteps*log2e) + expRound
		steps := math.Float64bits(k)
		k -= expRound
		r := x - k*(ln2Hi/expSteps)
		r -= k * (ln2Lo / expSteps)
		r2 := r * r
		p := r + r2*(c2+c3*r+r2*(c4+c5*r))
		s := math.Float64frombits(powers[steps%expSteps] + steps<<(52-expStepBits))
		dst[t] = s + s*p
	}
}

const (
	expStepBits = 7
	expSteps    = 1 << expStepBits // of a doubling
)

// powers holds the bits of 2^(j/expSteps) minus j's share of the exponent, which is added with k.
var powers = func() (bits [expSteps]uint64) {
	for j := range bits {
		bits[j] = math.Float64bits(math.Exp2(float64(j)/expSteps)) - uint64(j)<<(52-expStepBits)
	}
	return bits
}()

const (
	log2e    = 1.44269504088896340735992468100189214
	expRound = 1.5 * (1 << 52) // adding it rounds to the nearest integer and leaves that in the low bits
	ln2Hi    = 6.93147180369123816490e-01
	ln2Lo    = 1.90821492927058770002e-10

	c2 = 1.0 / 2
	c3 = c2 / 3
	c4 = c3 / 4
	c5 = c4 / 5
)

// expLimit lies in the range where exp's loops are exact. 1/(1+e^expLimit) is practically 0.
const expLimit = 300
