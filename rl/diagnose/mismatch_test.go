package diagnose

import (
	"errors"
	"math"
	"testing"
)

func TestMismatch(t *testing.T) {
	var m Mismatch
	if r := m.Report(); r != (MismatchReport{}) {
		t.Errorf("nothing: %+v", r)
	}
	rows := []Row{
		{Mask: []int32{0, 1, 1}, LogProbs: []float64{9e9, -1, -2}, Old: []float64{0, -1.02, -2}},
		{Mask: []int32{1, 1}, LogProbs: []float64{-0.5, -3}, Old: []float64{-0.496, -3}},
	}
	rows[0].LogProbs[0] = 0
	if err := m.Add(rows...); err != nil {
		t.Fatal(err)
	}
	r := m.Report()
	near(t, "mean", r.Mean, 0.006)
	near(t, "maximum", r.Max, 0.02)
	near(t, "99th percentile", r.P99, 0.004+0.97*0.016)
	near(t, "beyond 1%", r.Beyond, 0.25)
	near(t, "least ratio", r.LeastRatio, math.Exp(-0.004))
	near(t, "greatest ratio", r.GreatestRatio, math.Exp(0.02))
	if r.Tokens != 4 {
		t.Errorf("%d tokens", r.Tokens)
	}
	if err := m.Add(Row{Mask: []int32{1}, LogProbs: []float64{-1}}); !errors.Is(err, ErrBadInput) {
		t.Errorf("a row without the sampler's: %v", err)
	}
	if m.Report() != r {
		t.Error("a refused row was added")
	}
}
