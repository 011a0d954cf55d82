package diagnose

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestBootstrapOfConstantUnitsHasNoWidth(t *testing.T) {
	mean, low, high := Bootstrap([]float64{0.5, 0.5, 0.5}, 100, rand.New(rand.NewPCG(1, 2)))
	if mean != 0.5 || low != 0.5 || high != 0.5 {
		t.Fatalf("got %v [%v, %v], want 0.5 and no width", mean, low, high)
	}
}

func TestBootstrapOfNothingIsNaN(t *testing.T) {
	if mean, _, _ := Bootstrap(nil, 10, rand.New(rand.NewPCG(1, 2))); !math.IsNaN(mean) {
		t.Fatalf("got %v, want NaN", mean)
	}
}

// The interval of a mean of n coin flips is close to the normal approximation ±1.96·sqrt(p(1−p)/n).
func TestBootstrapMatchesNormalApproximation(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	units := make([]float64, 400)
	for i := range units {
		units[i] = float64(i % 2)
	}
	mean, low, high := Bootstrap(units, 4000, rng)
	half := 1.96 * math.Sqrt(0.25/400)
	if mean != 0.5 || math.Abs(low-(0.5-half)) > 0.006 || math.Abs(high-(0.5+half)) > 0.006 {
		t.Fatalf("got %v [%v, %v], want 0.5 ± %v", mean, low, high, half)
	}
}

func TestBootstrapCoversTheTruth(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	covered := 0
	const trials = 400
	for range trials {
		units := make([]float64, 60)
		for i := range units {
			if rng.Float64() < 0.3 {
				units[i] = 1
			}
		}
		if _, low, high := Bootstrap(units, 400, rng); low <= 0.3 && 0.3 <= high {
			covered++
		}
	}
	if share := float64(covered) / trials; share < 0.9 || share > 0.99 {
		t.Fatalf("the interval covers the truth in %v of trials, want about 0.95", share)
	}
}
