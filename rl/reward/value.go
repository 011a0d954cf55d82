package reward

import (
	"math"
	"math/big"
	"strings"
)

// maxValueBytes bounds the texts that are read as numbers or lists.
const maxValueBytes = 1000

// relative is the tolerance of values that are not exact.
const relative = 1e-6

// value is what a written number is worth.
type value struct {
	rat     *big.Rat // nil when only the float is known
	float   float64
	literal bool   // an integer, decimal or percentage: nothing left to work out
	unit    string // hour, cm, dollar, student …; "" without one
}

// compareValues returns the verdict on two values. Where one is beyond a float64 only exact values
// can agree: any number is within a relative 1e-6 of an infinite one. Units that both have must be the same;
// none is converted.
func compareValues(a, b value) Verdict {
	if a.unit != "" && b.unit != "" && a.unit != b.unit {
		return Wrong
	}
	if a.rat != nil && b.rat != nil {
		return verdictOf(a.rat.Cmp(b.rat) == 0, Rational)
	}
	if math.IsInf(a.float, 0) || math.IsInf(b.float, 0) {
		return Wrong
	}
	return verdictOf(math.Abs(a.float-b.float) <= relative*math.Max(math.Abs(a.float), math.Abs(b.float)), Numeric)
}

// exact wraps a rational.
func exact(r *big.Rat) value {
	f, _ := r.Float64()
	return value{rat: r, float: f}
}

// inexact wraps a float64 that was worked out of others; false where it left their range, for
// a product, quotient or root of what is not zero is not zero.
func inexact(f float64) (value, bool) {
	return value{float: f}, f != 0 && !math.IsInf(f, 0) && !math.IsNaN(f)
}

// zero reports an exact zero.
func (v value) zero() bool { return v.rat != nil && v.rat.Sign() == 0 }

// divide returns v/d; false if d is zero.
func (v value) divide(d value) (value, bool) {
	switch {
	case d.float == 0:
		return value{}, false
	case v.rat != nil && d.rat != nil && d.rat.Sign() != 0:
		return exact(new(big.Rat).Quo(v.rat, d.rat)), true
	case v.zero():
		return value{}, true // zero, as its float says
	}
	return inexact(v.float / d.float)
}

// times multiplies.
func (v value) times(o value) (value, bool) {
	switch {
	case v.rat != nil && o.rat != nil:
		return exact(new(big.Rat).Mul(v.rat, o.rat)), true
	case v.zero() || o.zero():
		return value{}, true // zero, as its float says
	}
	return inexact(v.float * o.float)
}

// negated changes the sign and keeps whether the number was literal.
func (v value) negated() value {
	if v.rat != nil {
		v.rat = new(big.Rat).Neg(v.rat)
	}
	v.float = -v.float
	return v
}

// root is the n-th root of a value that is not negative; exact for squares of rationals.
func (v value) root(n int) (value, bool) {
	if v.float < 0 {
		return value{}, false
	}
	if n == 2 && v.rat != nil {
		p, q := new(big.Int).Sqrt(v.rat.Num()), new(big.Int).Sqrt(v.rat.Denom())
		r := new(big.Rat).SetFrac(p, q)
		if new(big.Rat).Mul(r, r).Cmp(v.rat) == 0 {
			return exact(r), true
		}
	}
	if v.zero() {
		return value{}, true // zero, as its float says
	}
	return inexact(math.Pow(v.float, 1/float64(n)))
}

// parseValue reads a written number: an integer, decimal, percentage, fraction, mixed number or
// rational multiple of a root, with currency or a known unit.
func parseValue(text string) (value, bool) {
	if len(text) > maxValueBytes {
		return value{}, false
	}
	text, unit, ok := bareNumber(text)
	if !ok {
		return value{}, false
	}
	body, percent := strings.CutSuffix(text, "%")
	p := parser{text: strings.TrimSpace(body)}
	v := p.signed()
	if p.space(); p.failed || p.at != len(p.text) {
		return value{}, false
	}
	if percent {
		literal := v.literal
		v, _ = v.divide(exact(big.NewRat(100, 1)))
		v.literal = literal
	}
	v.unit = unit
	return v, true
}

// Kind says how answers are compared with a gold: as a number, as a list, or as a text, which sympy may read.
func Kind(gold string) string {
	_, compared, comparable := comparedParts(gold, gold)
	if _, number := parseValue(compared); comparable && number {
		return "number"
	}
	if len(readList(gold, false).elements) > 1 {
		return "list"
	}
	return "text"
}
