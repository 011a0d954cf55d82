package simulate

import (
	"fmt"
	"math"
	"math/rand/v2"
)

// Distribution is a random number of a workload file: exactly one of its kinds, cut to min and max.
type Distribution struct {
	Constant    *float64   `yaml:"constant"`
	Uniform     []float64  `yaml:"uniform"`     // [low, high]
	Exponential *float64   `yaml:"exponential"` // mean
	Geometric   *float64   `yaml:"geometric"`   // mean ≥ 1; the values are 1, 2, 3, …
	Lognormal   *Lognormal `yaml:"lognormal"`
	Pareto      *Pareto    `yaml:"pareto"`
	Min         *float64   `yaml:"min"`
	Max         *float64   `yaml:"max"`
}

// Lognormal is the exponential of a normal number with mean ln(median).
type Lognormal struct {
	Median float64 `yaml:"median"`
	Sigma  float64 `yaml:"sigma"`
}

// Pareto has the tail P(x > t) = (least/t)^alpha. Its mean is infinite if alpha is at most 1, so it needs a max then.
type Pareto struct {
	Least float64 `yaml:"least"`
	Alpha float64 `yaml:"alpha"`
}

// validate reports the first fault, under the name of the field.
func (d Distribution) validate(field string) error {
	kinds := 0
	for _, has := range []bool{d.Constant != nil, d.Uniform != nil, d.Exponential != nil, d.Geometric != nil,
		d.Lognormal != nil, d.Pareto != nil} {
		if has {
			kinds++
		}
	}
	bad := func(x float64) bool { return !(x >= 0) || math.IsInf(x, 0) }
	switch {
	case kinds != 1:
		return fmt.Errorf(
			"%s: needs exactly one of constant, uniform, exponential, geometric, lognormal, pareto",
			field,
		)
	case d.Constant != nil && bad(*d.Constant):
		return fmt.Errorf("%s.constant: must be finite and ≥ 0, got %g", field, *d.Constant)
	case d.Uniform != nil && (len(d.Uniform) != 2 || bad(d.Uniform[0]) || bad(d.Uniform[1]) ||
		d.Uniform[1] < d.Uniform[0]):
		return fmt.Errorf("%s.uniform: must be [low, high] with 0 ≤ low ≤ high, got %v", field, d.Uniform)
	case d.Exponential != nil && bad(*d.Exponential):
		return fmt.Errorf("%s.exponential: must be finite and ≥ 0, got %g", field, *d.Exponential)
	case d.Geometric != nil && (bad(*d.Geometric) || *d.Geometric < 1):
		return fmt.Errorf("%s.geometric: must be finite and ≥ 1, got %g", field, *d.Geometric)
	case d.Lognormal != nil && (bad(d.Lognormal.Median) || bad(d.Lognormal.Sigma)):
		return fmt.Errorf("%s.lognormal: median and sigma must be finite and ≥ 0, got %+v", field, *d.Lognormal)
	case d.Pareto != nil && (bad(d.Pareto.Least) || !(d.Pareto.Alpha > 0)):
		return fmt.Errorf("%s.pareto: least must be ≥ 0 and alpha > 0, got %+v", field, *d.Pareto)
	case d.Pareto != nil && d.Pareto.Alpha <= 1 && d.Max == nil:
		return fmt.Errorf("%s.pareto: alpha %g needs a max", field, d.Pareto.Alpha)
	case d.Min != nil && d.Max != nil && *d.Min > *d.Max:
		return fmt.Errorf("%s: min %g is greater than max %g", field, *d.Min, *d.Max)
	}
	for name, x := range map[string]*float64{"min": d.Min, "max": d.Max} {
		if x != nil && bad(*x) {
			return fmt.Errorf("%s.%s: must be finite and ≥ 0, got %g", field, name, *x)
		}
	}
	return nil
}

// zero reports whether the distribution is left out.
func (d Distribution) zero() bool {
	return d.Constant == nil && d.Uniform == nil && d.Exponential == nil && d.Geometric == nil && d.Lognormal == nil &&
		d.Pareto == nil && d.Min == nil && d.Max == nil
}

// draw returns a number.
func (d Distribution) draw(rng *rand.Rand) float64 {
	x := 0.0
	switch {
	case d.Constant != nil:
		x = *d.Constant
	case d.Uniform != nil:
		x = d.Uniform[0] + (d.Uniform[1]-d.Uniform[0])*rng.Float64()
	case d.Exponential != nil:
		x = *d.Exponential * rng.ExpFloat64()
	case d.Geometric != nil:
		x = 1
		if p := 1 / *d.Geometric; p < 1 {
			x += math.Floor(math.Log(1-rng.Float64()) / math.Log(1-p))
		}
	case d.Lognormal != nil:
		x = d.Lognormal.Median * math.Exp(d.Lognormal.Sigma*rng.NormFloat64())
	case d.Pareto != nil:
		x = d.Pareto.Least * math.Pow(1-rng.Float64(), -1/d.Pareto.Alpha)
	}
	if d.Min != nil {
		x = max(x, *d.Min)
	}
	if d.Max != nil {
		x = min(x, *d.Max)
	}
	return x
}
