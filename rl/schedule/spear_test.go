package schedule

import (
	"math"
	"testing"
)

func TestCurriculum(t *testing.T) {
	tests := []struct {
		weight interface{ At(step int) float64 }
		step   int
		want   float64
	}{
		{Gamma{200}, 0, 0},
		{Gamma{200}, 50, 0.5 * (1 - math.Sqrt2/2)},
		{Gamma{200}, 100, 0.5},
		{Gamma{200}, 200, 1},
		{Gamma{200}, 201, 1},
		{Gamma{4}, -3, 0},
		{Gamma{}, 0, 1}, // no horizon: the weight is always 1
		{Gamma{}, 99, 1},
		{Mu{200}, 0, 1},
		{Mu{200}, 150, 0.5 * (1 - math.Sqrt2/2)},
		{Mu{200}, 200, 0},
		{Mu{200}, 5000, 0},
		{Mu{}, 0, 1},
		{Mu{}, 7, 1},
	}
	for _, tt := range tests {
		if got := tt.weight.At(tt.step); math.Abs(got-tt.want) > 1e-15 {
			t.Errorf("%T %+v at step %d: %g, want %g", tt.weight, tt.weight, tt.step, got, tt.want)
		}
	}
}

// γ and μ of equal lengths add up to 1: what the tool reward gives up, self-imitation takes over. Neither turns back.
func TestCurriculumHandsOver(t *testing.T) {
	gamma, mu := Gamma{200}, Mu{200}
	for step := range 400 {
		if sum := gamma.At(step) + mu.At(step); math.Abs(sum-1) > 1e-15 {
			t.Fatalf("step %d: γ + μ = %g", step, sum)
		}
		if gamma.At(step+1) < gamma.At(step) || mu.At(step+1) > mu.At(step) {
			t.Fatalf("step %d: γ falls or μ rises", step)
		}
	}
}
