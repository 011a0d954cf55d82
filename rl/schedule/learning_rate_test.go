package schedule

import (
	"math"
	"testing"
)

func TestLearningRate(t *testing.T) {
	tests := []struct {
		kind                Kind
		warmup, total, step int
		want                float64
	}{
		{Constant, 0, 0, 0, 1},
		{Constant, 0, 0, 1000, 1},
		{Constant, 4, 0, 0, 0.25},
		{Constant, 4, 0, 3, 1},
		{Constant, 4, 0, 4, 1},
		{Cosine, 0, 10, 0, 1},
		{Cosine, 0, 10, 5, 0.5},
		{Cosine, 0, 10, 10, 0},
		{Cosine, 0, 10, 99, 0},
		{Cosine, 2, 10, 0, 0.5},
		{Cosine, 2, 10, 6, 0.5},
		{Linear, 2, 10, 1, 1},
		{Linear, 2, 10, 2, 1},
		{Linear, 2, 10, 4, 0.75},
		{Linear, 2, 10, 10, 0},
		{Linear, 10, 10, 9, 1}, // all warm-up
		{Linear, 10, 10, 10, 0},
		{Linear, 20, 10, 4, 0.25},
	}
	for _, tt := range tests {
		got, err := LearningRate(tt.kind, 1, tt.warmup, tt.total, tt.step)
		if err != nil || math.Abs(got-tt.want) > 1e-12 {
			t.Errorf(
				"%s warm-up %d of %d, step %d: %g (%v), want %g", tt.kind, tt.warmup, tt.total, tt.step, got, err,
				tt.want,
			)
		}
	}
}

func TestLearningRateNeverRisesAfterWarmup(t *testing.T) {
	for _, d := range decays {
		kind := Kind(d.Name)
		last := math.Inf(1)
		for step := 5; step < 60; step++ {
			rate, err := LearningRate(kind, 3e-4, 5, 50, step)
			if err != nil || rate < 0 || rate > last {
				t.Fatalf("%s step %d: %g after %g (%v)", kind, step, rate, last, err)
			}
			last = rate
		}
	}
}

func TestLearningRateRefuses(t *testing.T) {
	tests := []struct {
		kind                Kind
		base                float64
		warmup, total, step int
	}{
		{"step", 1, 0, 10, 0}, {Cosine, 1, 0, 0, 0}, {Linear, 1, 0, -1, 0}, {Constant, 1, -1, 0, 0},
		{Constant, 1, 0, 0, -1}, {Constant, -1, 0, 0, 0}, {Constant, math.NaN(), 0, 0, 0}, {
			Constant, math.Inf(1), 0, 0, 0,
		},
	}
	for _, tt := range tests {
		if _, err := LearningRate(tt.kind, tt.base, tt.warmup, tt.total, tt.step); err == nil {
			t.Errorf("%+v was accepted", tt)
		}
	}
}
