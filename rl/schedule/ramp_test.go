package schedule

import (
	"math"
	"testing"
)

func TestRamp(t *testing.T) {
	tests := []struct {
		ramp Ramp
		step int
		want float64
	}{
		{Ramp{}, 0, 1},
		{Ramp{}, 99, 1},
		{Ramp{Shape: Flat, Steps: 10}, 3, 1},
		{Ramp{CosineRise, 200}, 0, 0},
		{Ramp{CosineRise, 200}, 50, 0.5 * (1 - math.Sqrt2/2)},
		{Ramp{CosineRise, 200}, 100, 0.5},
		{Ramp{CosineRise, 200}, 200, 1},
		{Ramp{CosineRise, 200}, 201, 1},
		{Ramp{CosineFall, 200}, 0, 1},
		{Ramp{CosineFall, 200}, 150, 0.5 * (1 - math.Sqrt2/2)},
		{Ramp{CosineFall, 200}, 200, 0},
		{Ramp{CosineFall, 200}, 5000, 0},
		{Ramp{LinearRise, 4}, 1, 0.25},
		{Ramp{LinearRise, 4}, 4, 1},
		{Ramp{LinearFall, 4}, 1, 0.75},
		{Ramp{LinearFall, 4}, 9, 0},
		{Ramp{CosineRise, 0}, 0, 1}, // no steps: no ramp
		{Ramp{CosineFall, 0}, 0, 1},
		{Ramp{LinearFall, 0}, 7, 1},
		{Ramp{LinearRise, 4}, -3, 0},
	}
	for _, tt := range tests {
		if err := tt.ramp.Validate(); err != nil {
			t.Errorf("%+v: %v", tt.ramp, err)
		}
		if got := tt.ramp.At(tt.step); math.Abs(got-tt.want) > 1e-15 {
			t.Errorf("%+v at step %d: %g, want %g", tt.ramp, tt.step, got, tt.want)
		}
	}
}

func TestRampsStayWithinBoundsAndNeverTurn(t *testing.T) {
	for _, shape := range Shapes() {
		r := Ramp{shape, 37}
		up := r.At(37) >= r.At(0)
		for step := 1; step < 60; step++ {
			before, now := r.At(step-1), r.At(step)
			if now < 0 || now > 1 || up && now < before || !up && now > before {
				t.Fatalf("%s step %d: %g after %g", shape, step, now, before)
			}
		}
	}
}

func TestRampRefuses(t *testing.T) {
	for _, r := range []Ramp{{"steep", 4}, {CosineRise, -1}} {
		if r.Validate() == nil {
			t.Errorf("%+v was accepted", r)
		}
	}
}

// γ and μ of equal lengths add up to 1: what the tool reward gives up, self-imitation takes over.
func TestCurriculumHandsOver(t *testing.T) {
	c := SPEARWebShop
	for step := range 400 {
		if sum := c.Gamma(step) + c.Mu(step); math.Abs(sum-1) > 1e-15 {
			t.Fatalf("step %d: γ + μ = %g", step, sum)
		}
	}
	for _, c := range []Curriculum{SPEARALFWorld, SPEARWebShop, SPEARMath, SPEARSokoban} {
		if err := c.Validate(); err != nil || c.Gamma(c.WarmSteps) != 1 || c.Mu(c.DecaySteps) != 0 || c.Gamma(0) != 0 || c.Mu(0) != 1 {
			t.Errorf("%+v does not start at (0, 1) and arrive at (1, 0): %v", c, err)
		}
	}
	if none := (Curriculum{}); none.Gamma(0) != 1 || none.Mu(0) != 1 {
		t.Errorf("no curriculum: γ %g, μ %g", none.Gamma(0), none.Mu(0))
	}
	for _, c := range []Curriculum{{WarmSteps: -1}, {DecaySteps: -1}} {
		if c.Validate() == nil {
			t.Errorf("%+v was accepted", c)
		}
	}
}
