package schedule

// Ramps: with p = t/T for 0 ≤ t ≤ T and p = 1 beyond,
//
//	cosine_rise  ½(1 − cos πp)    SPEAR's γ(t)
//	cosine_fall  ½(1 + cos πp)    SPEAR's μ(t)
//	linear_rise  p
//	linear_fall  1 − p
//	constant     1
//
// SPEAR (section 4.2) writes γ as 1 and μ as 0 for t > T, which is where the cosines have arrived.
// Departures: none; the linear ramps and the constant are for recipes of one's own.

import (
	"fmt"
	"math"
)

// Shape names how a ramp goes from its first value to its last.
type Shape string

// The shapes.
const (
	Flat       Shape = "constant"
	CosineRise Shape = "cosine_rise"
	CosineFall Shape = "cosine_fall"
	LinearRise Shape = "linear_rise"
	LinearFall Shape = "linear_fall"
)

// Shapes lists every shape.
func Shapes() []Shape { return []Shape{Flat, CosineRise, CosineFall, LinearRise, LinearFall} }

// Ramp is a weight of [0, 1] that depends on the step. Its zero value is 1 at every step.
type Ramp struct {
	Shape Shape // Flat when empty
	Steps int   // T; the ramp has arrived from step T on, 0: there is none and the weight is 1
}

// Validate reports the first bad field.
func (r Ramp) Validate() error {
	if r.Steps < 0 {
		return fmt.Errorf("steps must not be negative, got %d", r.Steps)
	}
	switch r.Shape {
	case "", Flat, CosineRise, CosineFall, LinearRise, LinearFall:
		return nil
	}
	return fmt.Errorf("shape must be one of %v, got %q", Shapes(), r.Shape)
}

// At returns the weight of a step; a negative one has that of step 0.
func (r Ramp) At(step int) float64 {
	if r.Steps <= 0 {
		return 1
	}
	p := 1.0
	if step < r.Steps {
		p = float64(max(step, 0)) / float64(r.Steps)
	}
	switch r.Shape {
	case CosineRise:
		return (1 - math.Cos(math.Pi*p)) / 2
	case CosineFall:
		return (1 + math.Cos(math.Pi*p)) / 2
	case LinearRise:
		return p
	case LinearFall:
		return 1 - p
	}
	return 1
}
