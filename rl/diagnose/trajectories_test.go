package diagnose

import (
	"errors"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestToolErrors(t *testing.T) {
	var e ToolErrors
	err := e.Add(
		ToolUse{Reward: 1, Calls: 4, Failures: Failures{Format: 1, Timeout: 1}},
		ToolUse{Reward: 0.5, Calls: 6, Failures: Failures{Execution: 1}},
		ToolUse{Reward: 1},            // called nothing
		ToolUse{Reward: 1, Calls: 10}, // no failure
		ToolUse{Reward: 0, Calls: 9, Failures: Failures{Execution: 9}}, // not rewarded
	)
	if err != nil {
		t.Fatal(err)
	}
	want := ToolErrorReport{
		Trajectories: 4, Calling: 3, Calls: 20, Failures: Failures{1, 1, 1},
		Rate: 0.15, MeanRate: (0.5 + 1.0/6) / 3, Format: 0.05, Execution: 0.05, Timeout: 0.05, Touched: 2.0 / 3,
	}
	got := e.Report()
	near(t, "mean rate", got.MeanRate, want.MeanRate)
	got.MeanRate = want.MeanRate
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	for _, bad := range []ToolUse{{Calls: -1}, {Calls: 1, Failures: Failures{Timeout: 2}}, {Reward: math.NaN()},
		{Failures: Failures{Format: -1, Timeout: 1}}} {
		if err := e.Add(bad); !errors.Is(err, ErrBadInput) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}

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
	if strict.Merge(&z) == nil {
		t.Error("counts of other settings were merged")
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
		Chains: 4, Prompts: 2, Branches: 5, Branched: 0.5,
		PerTrajectory: []Bin{{0, 2}, {1, 1}, {4, 1}},
		PerPrompt:     []Bin{{0, 1}, {5, 1}},
		Spread:        []Bin{{0, 1}, {2, 1}},
		Runs:          []Bin{{1, 2}, {2, 1}},
		Consecutive:   0.5,
	}
	if diff := cmp.Diff(want, b.Report()); diff != "" {
		t.Error(diff)
	}
	if err := b.Add(Chain{Children: []int{-1}}); !errors.Is(err, ErrBadInput) {
		t.Errorf("a negative number of branches gave %v", err)
	}
}

func TestEffort(t *testing.T) {
	var e Effort
	err := e.Add(
		Trajectory{Calls: map[string]int{"search": 3, "python": 1}, Tokens: 100, Turns: 5},
		Trajectory{Calls: map[string]int{"search": 1, "python": 0}, Tokens: 300, Turns: 2, Truncated: true},
		Trajectory{Tokens: 200, Turns: 1},
		Trajectory{Tokens: 200},
	)
	if err != nil {
		t.Fatal(err)
	}
	got := e.Report()
	want := []ToolCalls{{"python", 1, 0.25, 1}, {"search", 4, 1, 2}}
	if diff := cmp.Diff(want, got.ByTool); diff != "" {
		t.Error(diff)
	}
	if got.Trajectories != 4 || got.Truncated != 0.25 || got.Calls.Mean != 1.25 || got.Calls.Max != 4 ||
		got.Turns.Mean != 2 {
		t.Errorf("got %+v", got)
	}
	if got.Tokens.Mean != 200 || got.Tokens.Min != 100 || got.Tokens.Max != 300 {
		t.Errorf("tokens %+v", got.Tokens)
	}
	near(t, "deviation", got.Tokens.Deviation, math.Sqrt(20000.0/3))
	for _, bad := range []Trajectory{{Tokens: -1}, {Turns: -1}, {Calls: map[string]int{"x": -1}}} {
		if err := e.Add(bad); !errors.Is(err, ErrBadInput) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}

func TestValidity(t *testing.T) {
	var v Validity
	v.Add(Turn{Format: true, Action: true}, Turn{Format: true, Action: false})
	v.Add(Turn{Format: false, Action: true}, Turn{Format: true, Action: true})
	v.Add()
	want := ValidityReport{
		Turns: 4, Trajectories: 2, Format: 0.75, Action: 0.75, FormatThroughout: 0.5, ActionThroughout: 0.5,
	}
	if got := v.Report(); got != want {
		t.Errorf("got %+v, want %+v", got, want)
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
	all := []Edge{
		{0, "compute", "verify", 2}, {0, "compute", "plot", 1}, {0, "plot", "compute", 1},
		{0, "verify", "plot", 1}, {0, "verify", "verify", 1},
	}
	if diff := cmp.Diff(all, tr.Report(1).Flows()); diff != "" {
		t.Error(diff)
	}
}
