// Package exact sums float64 numbers without rounding, so that a sum depends neither on the order
// of its terms nor on how they were spread over shards.
//
// Glossary. A *limb* is 32 bits of a fixed-point number that is wide enough for every finite
// float64 and for 2^60 of them (Kulisch's long accumulator, in the small-superaccumulator form of
// Neal 2015). Rounding happens once, when the value is read: to nearest, ties to even.
package exact

import (
	"math"
	"math/big"
	"math/bits"
)

const (
	lowest   = -1074 // exponent of the least positive float64: limb 0 counts multiples of 2^lowest
	limbBits = 32
	limbs    = 68 // 2176 bits: 2098 of a float64's range and room for the number of terms
	// before is the number of additions after which carries must be moved: each adds less than 2^32 to a limb that
	// holds 2^63.
	before = 1 << 30
)

// Sum is a sum in progress; its zero value is 0. Copies are independent.
type Sum struct {
	limb    [limbs]int64
	pending int
}

// Add adds a finite number. It panics at NaN or infinity; callers must refuse those first.
func (s *Sum) Add(x float64) {
	b := math.Float64bits(x)
	exponent, mantissa := int(b>>52&0x7ff), b&(1<<52-1)
	switch exponent {
	case 0x7ff:
		panic("exact: sum of a number that is not finite")
	case 0:
		exponent = 1 // denormal: same scale as exponent 1, without the leading bit
	default:
		mantissa |= 1 << 52
	}
	at := (exponent - 1) / limbBits
	high, low := bits.Mul64(mantissa, 1<<((exponent-1)%limbBits))
	part := [3]int64{int64(low & (1<<limbBits - 1)), int64(low >> limbBits), int64(high)}
	negative := b>>63 == 1
	for i, p := range part {
		if negative {
			p = -p
		}
		s.limb[at+i] += p
	}
	if s.pending++; s.pending == before {
		s.carry()
	}
}

// AddSquare adds x², exactly where |x| lies between 1e-140 and 1e150.
func (s *Sum) AddSquare(x float64) {
	square := x * x
	s.Add(square)
	s.Add(math.FMA(x, x, -square))
}

// Merge adds another sum.
func (s *Sum) Merge(o *Sum) {
	s.carry()
	other := *o
	other.carry()
	for i := range s.limb {
		s.limb[i] += other.limb[i]
	}
	s.pending = 1
}

// carry moves the overflow of each limb to the next one; the last limb keeps the sign.
func (s *Sum) carry() {
	for i := range limbs - 1 {
		s.limb[i+1] += s.limb[i] >> limbBits
		s.limb[i] &= 1<<limbBits - 1
	}
	s.pending = 0
}

// Value returns the nearest float64; ±Inf where the sum lies beyond all of them.
func (s *Sum) Value() float64 {
	v, _ := scaled(s.integer(), lowest).Float64()
	return v
}

// integer is the sum as a multiple of 2^lowest.
func (s *Sum) integer() *big.Int {
	c := *s
	c.carry()
	total, term := new(big.Int), new(big.Int)
	for i := limbs - 1; i >= 0; i-- {
		total.Lsh(total, limbBits)
		total.Add(total, term.SetInt64(c.limb[i]))
	}
	return total
}

// scaled is i·2^exponent, unrounded.
func scaled(i *big.Int, exponent int) *big.Float {
	f := new(big.Float).SetInt(i)
	return f.SetMantExp(f, exponent)
}
