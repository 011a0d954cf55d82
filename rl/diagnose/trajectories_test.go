package diagnose

import (
	"errors"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestZeroAdvantage(t *testing.T) {
	z := ZeroAdvantage{}
	err := z.Add([]float64{1, 1}, []float64{0, 1}, []float64{0, 0}, []float64{1, 1}, nil, []float64{-1},
		[]float64{0.1, 0.1, 0.1}, []float64{0.5, 0.5 + 1e-4}) // the last varies, but less than 1e-6
	if err != nil {
		t.Fatal(err)
	}
	want := ZeroAdvantageReport{Groups: 7, Fraction: 6.0 / 7, SolveAll: 4.0 / 7, SolveNone: 2.0 / 7}
	if got := z.Report(); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	// A format reward of 0.1 is no solution.
	strict := ZeroAdvantage{SolvedAbove: 0.5}
	if err := strict.Add([]float64{0.1, 0.1}, []float64{1.1, 1.1}); err != nil {
		t.Fatal(err)
	}
	if got := strict.Report(); got.SolveAll != 0.5 || got.SolveNone != 0.5 {
		t.Errorf("got %+v", got)
	}
	for _, bad := range []*ZeroAdvantage{{MinVariance: -1}, {SolvedAbove: math.Inf(1)}} {
		if bad.Add() == nil {
			t.Errorf("%+v was accepted", bad)
		}
	}
	if err := z.Add([]float64{1}, []float64{math.NaN()}); !errors.Is(err, ErrBadInput) || z.Report() != want {
		t.Errorf("a reward that is no number gave %v", err)
	}
}

func TestBranches(t *testing.T) {
	var b Branches
	err := b.Add(
		Chain{Prompt: "a", Children: []int{1, 2, 0, 1}}, // runs of 2 and 1
		Chain{Prompt: "a", Children: []int{0, 0}},
		Chain{Prompt: "b"},
		Chain{Prompt: "a", Children: []int{1}},
	)
	if err != nil {
		t.Fatal(err)
	}
	want := BranchReport{
		Chains: 4, Branches: 5, Branched: 0.5,
		Spread:      []Bin{{0, 1}, {2, 1}},
		Runs:        []Bin{{1, 2}, {2, 1}},
		Consecutive: 0.5,
	}
	if diff := cmp.Diff(want, b.Report()); diff != "" {
		t.Error(diff)
	}
	if err := b.Add(Chain{Children: []int{-1}}); !errors.Is(err, ErrBadInput) {
		t.Errorf("a negative number of branches gave %v", err)
	}
}

func TestTransitions(t *testing.T) {
	var tr Transitions
	tr.Add("compute", "verify", "verify")
	tr.Add("compute", "verify", "plot")
	tr.Add("compute", "plot", "compute")
	tr.Add()
	got := tr.Report(MinFrequency) // "plot" occurs twice
	want := TransitionReport{
		Nodes: []Node{{0, "compute", 3}, {1, "verify", 2}, {2, "compute", 1}, {2, "verify", 1}},
		Edges: []Edge{{0, "compute", "verify", 2}, {1, "verify", "verify", 1}},
		Loops: 1.0 / 3,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
