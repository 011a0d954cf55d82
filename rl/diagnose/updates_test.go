package diagnose

import (
	"errors"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestGroupRewards(t *testing.T) {
	var g GroupRewards
	err := g.Add(
		GroupReward{Rewards: []float64{1, 0, 0, 1}, Kept: []float64{1, 0}},
		GroupReward{Rewards: []float64{3, 3}},
		GroupReward{},
		GroupReward{Rewards: []float64{2}, Kept: []float64{2}},
	)
	if err != nil {
		t.Fatal(err)
	}
	got := g.Report()
	if got.Groups != 3 || got.KeptGroups != 2 || got.Reward.N != 7 {
		t.Errorf("got %+v", got)
	}
	near(t, "mean of rewards", got.Reward.Mean, 10.0/7)
	near(t, "mean of means", got.Mean.Mean, 5.5/3)
	near(t, "mean deviation", got.Deviation.Mean, math.Sqrt(1.0/3)/3)
	near(t, "mean maximum", got.Max.Mean, 2)
	near(t, "kept mean", got.KeptMean.Mean, 1.25)
	near(t, "kept deviation", got.KeptDeviation.Mean, math.Sqrt(0.5)/2)
	near(t, "kept share", got.Kept, 2.0/3)
	for _, bad := range []GroupReward{{
		Rewards: []float64{math.NaN()},
	}, {Rewards: []float64{1}, Kept: []float64{math.Inf(1)}}} {
		if err := g.Add(bad); !errors.Is(err, ErrBadInput) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}

func TestQualities(t *testing.T) {
	var q Qualities
	err := q.Add(
		Quality{Error: 0.5, Format: 1},
		Quality{Error: 0, Format: 0, Answers: 1, Kept: true},
		Quality{Error: 0.25, Format: 0.5, Answers: 3, Kept: true},
		Quality{Error: 0.25, Format: 0.5, Answers: 2},
	)
	if err != nil {
		t.Fatal(err)
	}
	want := QualityReport{
		Trajectories: 4, Kept: 2, Error: 0.25, Format: 0.5, KeptError: 0.125, KeptFormat: 0.25,
		NoAnswer: 0.25, OneAnswer: 0.25, Several: 0.5,
	}
	if got := q.Report(); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	for _, bad := range []Quality{{Error: 2}, {Format: -1}, {Error: math.NaN()}, {Answers: -1}} {
		if err := q.Add(bad); !errors.Is(err, ErrBadInput) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}

func TestReplay(t *testing.T) {
	got, err := Replay(ReplayState{
		Step: 12, Gamma: 0.5, Mu: 0.25, Baselines: []float64{0.9, -0.2, 0.4, 0.1},
		Rows: []Replayed{
			{Step: 10, Advantage: 0.65, Accepted: true, Ratio: 1.2},
			{Step: 12, Advantage: 0.15, Accepted: true, Ratio: 0.8},
			{Step: 10, Advantage: -0.3, Ratio: math.NaN()}, // not accepted: its ratio is not read
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := ReplayReport{
		Size: 3, Accepted: 2, Acceptance: 2.0 / 3, Advantage: 0.4, Baselines: 4, P50: 0.25, Gamma: 0.5, Mu: 0.25,
		Ratio: Spread{N: 2, Mean: 1, Deviation: math.Sqrt(0.08), Min: 0.8, Max: 1.2}, Ages: []Bin{{0, 1}, {2, 2}},
	}
	near(t, "deviation", got.Ratio.Deviation, want.Ratio.Deviation)
	got.Ratio.Deviation = want.Ratio.Deviation
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	none, err := Replay(ReplayState{})
	if err != nil {
		t.Fatal(err)
	}
	noNaN(t, none)
	for _, bad := range []ReplayState{
		{Gamma: 2}, {Mu: -1}, {Mu: math.NaN()}, {Baselines: []float64{math.NaN()}},
		{Rows: []Replayed{{Step: 1}}}, {Rows: []Replayed{{Advantage: math.NaN()}}}, {
			Rows: []Replayed{{Accepted: true, Ratio: -1}},
		},
	} {
		if _, err := Replay(bad); !errors.Is(err, ErrBadInput) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}

// Five prompts of which two lack variance: two draws repeat two of the others.
func TestValues(t *testing.T) {
	var v Values
	err := v.Add(
		Value{Score: 0.4, Probability: 0.25, N: 2, Omega: 1.5}, Value{},
		Value{Score: 0.3, Probability: 0.25, N: 1, Omega: 1}, Value{},
		Value{Score: 0.5, Probability: 0.5, N: 2, Omega: 1.5},
	)
	if err != nil {
		t.Fatal(err)
	}
	got := v.Report()
	if got.Prompts != 5 || got.Kept != 3 || got.Replaced != 0.4 || got.Probability.Max != 0.5 {
		t.Errorf("got %+v", got)
	}
	near(t, "score", got.Score.Mean, 0.24)
	if diff := cmp.Diff([]Bin{{0, 2}, {1, 1}, {2, 2}}, got.N); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]WeightBin{{1, 1}, {1.5, 2}}, got.Omega); diff != "" {
		t.Error(diff)
	}
	for _, bad := range []Value{{Score: math.NaN()}, {Probability: 2}, {N: -1}, {N: 1, Omega: math.NaN()}} {
		if err := v.Add(bad); !errors.Is(err, ErrBadInput) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}

func TestAnchors(t *testing.T) {
	var a Anchors
	err := a.Add(
		TurnRow{"a", "start", 1, 0.5}, TurnRow{"a", "start", -1, -0.5},
		TurnRow{"a", "door", 1, 0}, TurnRow{"b", "start", 1, 0}, // the same observation of another prompt
	)
	if err != nil {
		t.Fatal(err)
	}
	want := AnchorReport{
		Rows: 4, Groups: 3, Sizes: []Bin{{1, 2}, {2, 1}}, Singletons: 2.0 / 3, SingletonRows: 0.5,
		Episode: 1, Step: 0.25, StepToEpisode: 0.25,
	}
	if diff := cmp.Diff(want, a.Report()); diff != "" {
		t.Error(diff)
	}
	var flat Anchors
	if err := flat.Add(TurnRow{Step: 1}); err != nil || flat.Report().StepToEpisode != 0 {
		t.Errorf("without episode advantages: %+v (%v)", flat.Report(), err)
	}
	if err := a.Add(TurnRow{Step: math.NaN()}); !errors.Is(err, ErrBadInput) {
		t.Errorf("an advantage that is no number gave %v", err)
	}
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

// Two steps: in the first a call waits 1 s behind another, in the second one runs alone.
func TestLatency(t *testing.T) {
	var l Latency
	err := l.Add(
		Call{Step: 0, Queued: 0, Started: 0, Finished: 1},
		Call{Step: 0, Queued: 0, Started: 1, Finished: 3},
		Call{Step: 1, Queued: 100, Started: 100, Finished: 101},
	)
	if err != nil {
		t.Fatal(err)
	}
	got := l.Report()
	if got.Calls != 3 || got.MaxQueueDepth != 1 || got.MaxInFlight != 2 || got.P50 != 1 || got.PerStep.Mean != 1.5 {
		t.Errorf("got %+v", got)
	}
	near(t, "latency", got.Latency.Mean, 5.0/3)
	near(t, "wait", got.Wait.Mean, 1.0/3)
	near(t, "P90", got.P90, 2.6)
	near(t, "queue depth", got.QueueDepth, 0.25) // 1 s of waiting in spans of 3 s and 1 s
	near(t, "in flight", got.InFlight, 1.25)
	for _, bad := range []Call{{
		Queued: 2, Started: 1, Finished: 3,
	}, {Started: 2, Finished: 1}, {Finished: math.Inf(1)}, {Started: math.NaN()}} {
		if err := l.Add(bad); !errors.Is(err, ErrBadInput) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	var instant Latency
	if err := instant.Add(Call{}, Call{}); err != nil {
		t.Fatal(err)
	}
	noNaN(t, instant.Report())
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
