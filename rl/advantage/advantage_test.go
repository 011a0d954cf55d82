package advantage

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// naive is the estimator as its formula reads, with the plain two-pass sums.
func naive(scores []float64, groups []string, std bool) []float64 {
	out := make([]float64, len(scores))
	for i := range scores {
		var s []float64
		for j := range scores {
			if groups[j] == groups[i] {
				s = append(s, scores[j])
			}
		}
		mean, deviation := 0.0, 1.0
		if n := float64(len(s)); n > 1 {
			for _, v := range s {
				mean += v / n
			}
			square := 0.0
			for _, v := range s {
				square += (v - mean) * (v - mean)
			}
			deviation = math.Sqrt(square / (n - 1))
		}
		out[i] = scores[i] - mean
		if std {
			out[i] /= deviation + 1e-6
		}
	}
	return out
}

func randomBatch(rng *rand.Rand) (scores []float64, groups []string) {
	for g := range 1 + rng.IntN(6) {
		for range 1 + rng.IntN(9) {
			scores = append(scores, math.Round(rng.NormFloat64()*4)/4)
			groups = append(groups, fmt.Sprint("g", g))
		}
	}
	return scores, groups
}

func TestEstimateAgreesWithTheFormula(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		scores, groups := randomBatch(rng)
		for _, std := range []bool{false, true} {
			got, err := Group{Std: std}.Estimate(scores, groups)
			if err != nil {
				t.Fatal(err)
			}
			for i, want := range naive(scores, groups, std) {
				if math.Abs(got[i]-want) > 1e-9 {
					t.Fatalf("std %v row %d of %v: %g, want %g", std, i, scores, got[i], want)
				}
			}
		}
	}
}

func TestEstimateIgnoresOrderAndShards(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	estimator := Group{Std: true}
	for range 200 {
		scores, groups := randomBatch(rng)
		want, err := estimator.Estimate(scores, groups)
		if err != nil {
			t.Fatal(err)
		}
		perm := rng.Perm(len(scores))
		moved, names := make([]float64, len(scores)), make([]string, len(scores))
		for to, from := range perm {
			moved[to], names[to] = scores[from], groups[from]
		}
		got, err := estimator.Estimate(moved, names)
		if err != nil {
			t.Fatal(err)
		}
		for to, from := range perm {
			if got[to] != want[from] {
				t.Fatalf("order changed row %d: %v, want %v", from, got[to], want[from])
			}
		}
		for i, v := range inShards(t, estimator, scores, groups, 1+rng.IntN(4)) {
			if v != want[i] {
				t.Fatalf("shards changed row %d: %v, want %v", i, v, want[i])
			}
		}
	}
}

// inShards estimates whole groups shard by shard.
func inShards(t *testing.T, estimator Group, scores []float64, groups []string, shards int) []float64 {
	t.Helper()
	out := make([]float64, len(scores))
	for s := range shards {
		var rows []int
		var part []float64
		var names []string
		for i, g := range groups {
			if int(g[1]-'0')%shards == s {
				rows, part, names = append(rows, i), append(part, scores[i]), append(names, g)
			}
		}
		got, err := estimator.Estimate(part, names)
		if err != nil {
			t.Fatal(err)
		}
		for k, i := range rows {
			out[i] = got[k]
		}
	}
	return out
}

func TestEstimateDegenerateGroups(t *testing.T) {
	tests := []struct {
		name   string
		group  Group
		scores []float64
		want   []float64
	}{
		{"no rows", Group{Std: true}, nil, nil},
		{"one row, raw", Group{Std: true}, []float64{0.7}, []float64{0.7 / (1 + 1e-6)}},
		{"one row, raw, no std", Group{}, []float64{0.7}, []float64{0.7}},
		{"one row, zero", Group{Std: true, SingleGroup: SingleZero}, []float64{0.7}, []float64{0}},
		{"equal scores that do not sum exactly", Group{Std: true}, []float64{0.1, 0.1, 0.1}, []float64{0, 0, 0}},
	}
	for _, tt := range tests {
		names := make([]string, len(tt.scores))
		got, err := tt.group.Estimate(tt.scores, names)
		if err != nil {
			t.Fatal(err)
		}
		for i := range tt.want {
			if got[i] != tt.want[i] {
				t.Errorf("%s: row %d = %v, want exactly %v", tt.name, i, got[i], tt.want[i])
			}
		}
	}
}

func TestEstimateRefuses(t *testing.T) {
	for name, call := range map[string]func() ([]float64, error){
		"lengths":      func() ([]float64, error) { return Group{}.Estimate([]float64{1}, nil) },
		"not a number": func() ([]float64, error) { return Group{}.Estimate([]float64{math.NaN()}, []string{"g"}) },
		"infinite":     func() ([]float64, error) { return Group{}.Estimate([]float64{math.Inf(1)}, []string{"g"}) },
		"epsilon":      func() ([]float64, error) { return Group{Epsilon: -1}.Estimate(nil, nil) },
		"single group": func() ([]float64, error) { return Group{SingleGroup: "mean"}.Estimate(nil, nil) },
	} {
		if _, err := call(); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestVSPOBoundaryIsKept(t *testing.T) {
	groups := [][]float64{{0, 1}, {0, 0}} // variances 1/4 and 0
	if got := (VSPO{Alpha: 2, Temperature: 0.1, MinVariance: 0.25}).Resample(
		groups, func() float64 { return 0 },
	); !got.Prompts[0].Kept {
		t.Error("a variance of exactly the bound was dropped")
	}
}

func TestVSPODrawsFollowTheProbabilities(t *testing.T) {
	groups := [][]float64{{0, 1}, {0, 0, 0, 1}}
	for range 4000 {
		groups = append(groups, []float64{0, 0})
	}
	got := DefaultVSPO.Resample(groups, rand.New(rand.NewPCG(5, 6)).Float64)
	if len(got.Picks) != 4000 || got.Prompts[0].N+got.Prompts[1].N != 4002 {
		t.Fatalf("%d draws, N %d and %d", len(got.Picks), got.Prompts[0].N, got.Prompts[1].N)
	}
	share := float64(got.Prompts[0].N-1) / 4000
	// Five standard errors of a share of 4000 draws.
	if p := got.Prompts[0].Probability; math.Abs(share-p) > 5*math.Sqrt(p*(1-p)/4000) {
		t.Errorf("group 0 was drawn with share %.3f, probability %.3f", share, p)
	}
}

// The ablations of the paper: all kept groups are drawn alike, and a group that occurs N times weighs N.
func TestVSPOUniformDrawsAndUnsmoothedWeights(t *testing.T) {
	groups := [][]float64{{0, 1}, {0, 0, 0, 1}, {0, 0}, {1, 1}}
	v := DefaultVSPO
	v.Draws, v.Weights = DrawUniformly, WeighByCount
	draws := []float64{0.49, 0.5}
	got := v.Resample(groups, func() float64 { u := draws[0]; draws = draws[1:]; return u })
	if a, b := got.Prompts[0], got.Prompts[1]; a.Probability != 0.5 || a.N != 2 || a.Omega != 2 || b.N != 2 ||
		b.Omega != 2 || a.Value == b.Value {
		t.Errorf("got %+v and %+v", a, b)
	}
	draws = []float64{0.9, 0.9}
	got = v.Resample(groups, func() float64 { u := draws[0]; draws = draws[1:]; return u })
	if got.Prompts[0].Omega != 1 || got.Prompts[1].N != 3 || got.Prompts[1].Omega != 3 || got.Prompts[2].Omega != 0 {
		t.Errorf("got %+v", got.Prompts)
	}
}

func TestVSPODrawsFollowTheSeed(t *testing.T) {
	var groups [][]float64
	for i := range 40 {
		groups = append(groups, []float64{0, float64(i % 2)})
	}
	picks := func(seed uint64) []int {
		return DefaultVSPO.Resample(groups, rand.New(rand.NewPCG(seed, 1)).Float64).Picks
	}
	if !slices.Equal(picks(1), picks(1)) {
		t.Error("one seed gave two selections")
	}
	if slices.Equal(picks(1), picks(2)) {
		t.Error("two seeds gave one selection")
	}
}

func TestInverseCDFTakesTheFirstPlaceThatExceeds(t *testing.T) {
	cumulative := cumulate([]float64{0.25, 0, 0.25, 0.5 - 1e-9})
	for u, want := range map[float64]int{0: 0, 0.2: 0, 0.25: 2, 0.4: 2, 0.5: 3, 0.9999999999: 3} {
		if got := inverseCDF(cumulative, u); got != want {
			t.Errorf("%v fell to %d, want %d", u, got, want)
		}
	}
}

func TestSamplingProbabilitiesOfLargeValues(t *testing.T) {
	p := SamplingProbabilities([]float64{1e6, 1e6, -1e6}, 0.1)
	if p[0] != 0.5 || p[1] != 0.5 || p[2] != 0 {
		t.Errorf("got %v", p)
	}
	if SamplingProbabilities(nil, 1) != nil {
		t.Error("probabilities of nothing")
	}
}

func TestVSPOValidate(t *testing.T) {
	if err := DefaultVSPO.Validate(); err != nil {
		t.Error(err)
	}
	for _, v := range []VSPO{{Alpha: 0.5, Temperature: 1}, {Alpha: 2}, {Alpha: 2, Temperature: 1, MinVariance: -1},
		{Alpha: math.NaN(), Temperature: 1}} {
		if v.Validate() == nil {
			t.Errorf("%+v was accepted", v)
		}
	}
}

func ExampleGroup() {
	a, _ := Group{Std: true}.Estimate([]float64{1, 0, 0, 1}, []string{"p", "p", "p", "p"})
	fmt.Printf("%.6f\n", a)
	// Output: [0.866024 -0.866024 -0.866024 0.866024]
}
