package diagnose

import (
	"errors"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAnchors(t *testing.T) {
	var a Anchors
	a.Add("a", "start")
	a.Add("a", "start")
	a.Add("a", "door")
	a.Add("b", "start") // the same observation of another prompt
	want := AnchorReport{Turns: 4, Groups: 3, Sizes: []Bin{{1, 2}, {2, 1}}, Singletons: 2.0 / 3}
	if diff := cmp.Diff(want, a.Report()); diff != "" {
		t.Error(diff)
	}
	noNaN(t, new(Anchors).Report())
}

func TestStable(t *testing.T) {
	tests := []struct {
		success []float64
		tail    float64
		want    Stability
	}{
		{nil, 0.2, Stability{}},
		{[]float64{1}, 0.2, Stability{Steps: 1, Mean: 1}},
		{[]float64{0, 0, 0, 0, 0, 0, 0, 0, 0.25, 0.75}, 0.2, Stability{Steps: 2, Mean: 0.5, Variance: 0.0625}},
		{[]float64{1, 0, 0.5, 0.5, 0.5, 0.5}, 0.2, Stability{Steps: 2, Mean: 0.5}}, // ⌈1.2⌉
		{[]float64{0, 1}, 1, Stability{Steps: 2, Mean: 0.5, Variance: 0.25}},
	}
	for _, tt := range tests {
		if got, err := Stable(tt.success, tt.tail); err != nil || got != tt.want {
			t.Errorf("last %g of %v: %+v (%v), want %+v", tt.tail, tt.success, got, err, tt.want)
		}
	}
	hundred := make([]float64, 100)
	if got, err := Stable(hundred, 0.07); err != nil || got.Steps != 7 { // 0.07·100 is a little above 7
		t.Errorf("%d steps of 100 (%v), want 7", got.Steps, err)
	}
	if got, _ := Stable([]float64{0.5, 0.5}, 1); got.Variance != 0 {
		t.Errorf("equal steps have the variance %g", got.Variance)
	}
	for _, tail := range []float64{0, -1, 1.1, math.NaN()} {
		if _, err := Stable(nil, tail); err == nil {
			t.Errorf("tail %g was accepted", tail)
		}
	}
	if _, err := Stable([]float64{2}, 1); !errors.Is(err, ErrBadInput) {
		t.Errorf("a rate of 2 gave %v", err)
	}
}

func TestPercentile(t *testing.T) {
	values := []float64{4, 1, 3, 2}
	for q, want := range map[float64]float64{0: 1, 0.5: 2.5, 1: 4, 0.25: 1.75} {
		near(t, "percentile", Percentile(values, q), want)
	}
	if Percentile(nil, 0.5) != 0 || values[0] != 4 {
		t.Error("none is not 0, or the values were sorted in place")
	}
}
