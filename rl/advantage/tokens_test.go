package advantage

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// near compares with a tolerance for sums taken in another order.
func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*math.Max(1, math.Abs(b)) }

func TestWhitenAgreesWithTheFormula(t *testing.T) {
	rng := rand.New(rand.NewPCG(21, 22))
	for range 200 {
		s := randomSample(rng)
		got, err := Whiten(s.values, s.mask)
		if err != nil {
			t.Fatal(err)
		}
		n, sum, square := 0.0, 0.0, 0.0
		for i, mask := range s.mask {
			for t, m := range mask {
				n, sum = n+float64(m), sum+float64(m)*s.values[i][t]
			}
		}
		mean := sum / (n + 1e-8)
		for i, mask := range s.mask {
			for t, m := range mask {
				square += float64(m) * (s.values[i][t] - mean) * (s.values[i][t] - mean)
			}
		}
		scale := math.Sqrt(square/(n+1e-8)*n/(n-1) + 1e-8)
		for i, mask := range s.mask {
			for k, m := range mask {
				want := 0.0
				if m == 1 && n >= 2 {
					want = (s.values[i][k] - mean) / scale
				}
				if !near(got[i][k], want) {
					t.Fatalf("row %d token %d = %g, want %g", i, k, got[i][k], want)
				}
			}
		}
	}
}

// compact drops the masked tokens.
func compact(s sample) sample {
	s.rewards, s.values = valid(s.rewards, s.mask), valid(s.values, s.mask)
	mask := make([][]int32, len(s.mask))
	for i := range mask {
		mask[i] = make([]int32, len(s.rewards[i]))
		for t := range mask[i] {
			mask[i][t] = 1
		}
	}
	s.mask = mask
	return s
}

func TestObservationsAreSkipped(t *testing.T) {
	rng := rand.New(rand.NewPCG(23, 24))
	for range 100 {
		s := randomSample(rng)
		for _, name := range []string{"gae", "reinforce++"} {
			f := estimators()[name]
			got, want := mustRun(t, f, s), mustRun(t, f, compact(s))
			for i := range got {
				for k := range got[i] {
					if got[i][k] != want[i][k] {
						t.Fatalf("%s: row %d is %v with observations, %v without", name, i, got[i], want[i])
					}
				}
			}
		}
	}
}

func TestGAEOfOneIsReturnLessValue(t *testing.T) {
	rewards, values, mask := [][]float64{{1, 2, 9, 4}}, [][]float64{{0.5, 1, 7, 2}}, [][]int32{{1, 1, 0, 1}}
	got, err := DefaultGAE.Estimate(rewards, values, mask)
	if err != nil {
		t.Fatal(err)
	}
	for k, want := range []float64{7 - 0.5, 6 - 1, 2, 4 - 2} { // token 2 is skipped and keeps its value
		if got.Raw[0][k] != want || got.Returns[0][k] != want+values[0][k] {
			t.Errorf(
				"token %d: advantage %g, return %g; want %g, %g", k, got.Raw[0][k], got.Returns[0][k], want,
				want+values[0][k],
			)
		}
	}
	old, err := GAE{Gamma: 1, Lambda: 0, NoSkip: true}.Estimate(rewards, values, mask)
	if err != nil {
		t.Fatal(err)
	}
	for k, want := range []float64{1 + 1 - 0.5, 2 + 7 - 1, 9 + 2 - 7, 4 - 2} {
		if old.Raw[0][k] != want {
			t.Errorf("without skipping, token %d: %g, want %g", k, old.Raw[0][k], want)
		}
	}
}

func TestReinforcePPAtAGap(t *testing.T) {
	rewards, mask := [][]float64{{0, 0, 0.25, 1}}, [][]int32{{1, 1, 0, 1}}
	for gap, want := range map[Gap][]float64{
		GapCarry: {0.25, 0.5, 0, 1},
		GapReset: {0, 0, 0.75, 1},
	} {
		returns, _, err := ReinforcePP{Gamma: 0.5, Gap: gap}.Estimate(rewards, mask)
		if err != nil {
			t.Fatal(err)
		}
		for k := range want {
			if returns[0][k] != want[k] {
				t.Errorf("%s: returns %v, want %v", gap, returns[0], want)
			}
		}
	}
}

func TestTokenEstimatorsRefuse(t *testing.T) {
	nan := math.NaN()
	for _, tt := range []struct {
		name    string
		rewards [][]float64
		values  [][]float64
		mask    [][]int32
		want    string
	}{
		{"mask", [][]float64{{0, 0}}, [][]float64{{0, 0}}, [][]int32{{1, 2}}, "mask of row 0, token 1"},
		{"rows", [][]float64{{0}}, [][]float64{{0}}, [][]int32{{1}, {1}}, "1 rows of"},
		{"length", [][]float64{{0}, {0}}, [][]float64{{0}, {0}}, [][]int32{{1}, {1, 1}}, "row 1 has 1 of"},
		{
			"not a number", [][]float64{{0}, {1, nan}}, [][]float64{{0}, {1, nan}}, [][]int32{{1}, {1, 1}},
			"row 1, token 1 is NaN",
		},
	} {
		_, gae := DefaultGAE.Estimate(tt.rewards, tt.values, tt.mask)
		_, _, plus := DefaultReinforcePP.Estimate(tt.rewards, tt.mask)
		_, white := Whiten(tt.values, tt.mask)
		rows := []Row{{"g", "a", 0}, {"g", "b", 0}}[:len(tt.mask)]
		_, _, aepo := DefaultAEPO.Estimate(rows, make([]float64, len(rows)), tt.values, tt.mask)
		for name, err := range map[string]error{"gae": gae, "reinforce++": plus, "whiten": white, "aepo": aepo} {
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%s, %s: %v, want %q", tt.name, name, err, tt.want)
			}
		}
	}
	if _, err := DefaultGAE.Estimate([][]float64{{nan, 1}}, [][]float64{{0, 0}}, [][]int32{{0, 1}}); err != nil {
		t.Errorf("a reward under mask 0 was read: %v", err)
	}
	if _, _, err := (ReinforcePP{Gap: GapReset}).Estimate([][]float64{{nan, 1}}, [][]int32{{0, 1}}); err == nil {
		t.Error("reset reads rewards under mask 0, and took one that is not a number")
	}
	if _, err := (ReinforcePPBaseline{}).Estimate([]float64{1}, []string{"g"}, nil); err == nil {
		t.Error("a score without a row of mask was taken")
	}
}

func TestAEPOStatisticsPerScope(t *testing.T) {
	rows := []Row{{"g", "a", 0}, {"g", "b", 0}, {"h", "a", 0}}
	entropy, mask := [][]float64{{0, 2, 9}, {4, 6, 9}, {1, 1, 1}}, [][]int32{{1, 1, 0}, {1, 1, 0}, {1, 1, 1}}
	sd := math.Sqrt(20.0 / 3) // of 0, 2, 4, 6
	for scope, want := range map[Scope][][]float64{
		ScopeGroup:      {{-3 / sd, -1 / sd, 0}, {1 / sd, 3 / sd, 0}, {0, 0, 0}},
		ScopeTrajectory: {{-1 / math.Sqrt2, 1 / math.Sqrt2, 0}, {-1 / math.Sqrt2, 1 / math.Sqrt2, 0}, {0, 0, 0}},
	} {
		z, out, err := AEPO{Weight: 0.5, Scope: scope}.Estimate(rows, []float64{1, -2, 3}, entropy, mask)
		if err != nil {
			t.Fatal(err)
		}
		for i, a := range []float64{1, -2, 3} {
			for k := range z[i] {
				wantA := a * (1 + 0.5*want[i][k]) * float64(mask[i][k])
				if !near(z[i][k], want[i][k]) || !near(out[i][k], wantA) {
					t.Errorf(
						"%s row %d token %d: z %g, A %g; want %g, %g", scope, i, k, z[i][k], out[i][k], want[i][k],
						wantA,
					)
				}
			}
		}
	}
}
