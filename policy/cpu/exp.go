package cpu

import "math"

// exp32 is eˣ for float32 with a relative error below 1.2e-7: x = k·ln 2 + r with |r| ≤ ln 2 / 2, a polynomial
// of degree 6 for eʳ, then k added to the exponent. Below −87 it gives 0 (the true value would be subnormal);
// above 88 it is clamped to stay finite; NaN stays NaN.
func exp32(x float32) float32 {
	if x < expLow {
		return 0
	}
	if x > expHigh {
		x = expHigh
	}
	// Adding 1.5·2²³ rounds to the nearest integer and leaves it in the low bits.
	kf := x*log2e + expRound
	k := int32(math.Float32bits(kf)) - expRoundBits
	kf -= expRound
	r := x - kf*ln2Hi
	r -= kf * ln2Lo
	p := float32(expC6)
	p = p*r + expC5
	p = p*r + expC4
	p = p*r + expC3
	p = p*r + expC2
	p = p*(r*r) + r + 1
	return p * math.Float32frombits(uint32(k+127)<<23)
}

const (
	expLow       = -87
	expHigh      = 88
	log2e        = 1.44269504088896341
	expRound     = 12582912 // 1.5·2²³
	expRoundBits = 0x4B400000
	ln2Hi        = 0.693359375 // few bits, so that k·ln2Hi is exact
	ln2Lo        = -2.12194440e-4
	// Fitted for the least relative error of 1 + r + r²·(C2 + … + C6·r⁴) over ±ln 2 / 2: 3.1e-9 before rounding.
	expC2 = 0.49999993434
	expC3 = 0.16666520425
	expC4 = 0.041668390457
	expC5 = 0.0083687418323
	expC6 = 0.0013814547199
)

// expT is eˣ in the precision of T.
func expT[T float](x T) T {
	if isFloat32[T]() {
		return T(exp32(float32(x)))
	}
	return T(math.Exp(float64(x)))
}
