package rl

import (
	"slices"
	"testing"

	"github.com/ropewalk/ropewalk/internal/testing/vectors"
	"github.com/ropewalk/ropewalk/rl/advantage"
)

var advantageKinds = vectors.Kinds{
	"adv/grpo_std":              testGroup,
	"adv/grpo_nostd_drgrpo":     testGroup,
	"adv/grpo_turn_rows":        testTurnRows,
	"adv/rloo":                  testRLOO,
	"adv/reinforce_pp":          testReinforcePP,
	"adv/reinforce_pp_baseline": testReinforcePPBaseline,
	"adv/gae":                   testGAE,
	"adv/gigpo":                 testGiGPO,
	"adv/empg":                  testEMPG,
	"adv/aepo_entropy":          testAEPO,
	"adv/spear_recal":           testSPEAR,
	"adv/vspo":                  testVSPO,
	"sim/ratcliff_obershelp":    testRatcliffObershelp,
}

func testGroup(t *testing.T, c vectors.Case) {
	var in struct {
		Scores []float64
		UID    []string
		Eps    float64
		Std    bool `json:"norm_by_std"`
	}
	var want []float64
	c.Decode(t, &in, &want)
	got, err := advantage.Group{Std: in.Std, Epsilon: in.Eps}.Estimate(in.Scores, in.UID)
	if err != nil {
		t.Fatal(err)
	}
	vectors.Equal(t, "advantage", got, want)
}

func testVSPO(t *testing.T, c vectors.Case) {
	if c.Has("N") {
		testOmega(t, c)
		return
	}
	var in struct {
		Rewards      [][]float64
		T            float64
		Alpha        float64
		VarThreshold float64   `json:"var_threshold"`
		Draws        []float64 `json:"uniform_draws"`
	}
	var want struct {
		Mean      []float64
		VarPop    []float64 `json:"var_pop"`
		RMax      float64   `json:"r_max"`
		Value     []float64
		Kept      []int
		Removed   []int
		Resampled bool
		P         []float64
		Picks     []int
		N         []float64
		Omega     []float64
	}
	c.Decode(t, &in, &want)
	next := 0
	got := advantage.VSPO{
		Alpha: in.Alpha, Temperature: in.T, MinVariance: in.VarThreshold,
	}.Resample(in.Rewards, func() float64 {
		next++
		return in.Draws[next-1]
	})
	var mean, variance, value, p, n, omega []float64
	var kept, removed []int
	for i, prompt := range got.Prompts {
		mean, variance, value = append(
			mean,
			prompt.Mean,
		), append(
			variance,
			prompt.Variance,
		), append(
			value,
			prompt.Value,
		)
		n, omega = append(n, float64(prompt.N)), append(omega, prompt.Omega)
		if prompt.Kept {
			kept = append(kept, i)
			if got.Active {
				p = append(p, prompt.Probability)
			}
		} else {
			removed = append(removed, i)
		}
	}
	vectors.Equal(t, "mean", mean, want.Mean)
	vectors.Equal(t, "variance", variance, want.VarPop)
	vectors.Equal(t, "R_max", []float64{got.RMax}, []float64{want.RMax})
	vectors.Equal(t, "value", value, want.Value)
	vectors.Equal(t, "p", p, want.P)
	vectors.Equal(t, "N", n, want.N)
	vectors.Equal(t, "omega", omega, want.Omega)
	if !slices.Equal(removed, want.Removed) {
		t.Errorf("removed %v, want %v", removed, want.Removed)
	}
	if !slices.Equal(kept, want.Kept) || !slices.Equal(got.Picks, want.Picks) || got.Active != want.Resampled {
		t.Errorf(
			"kept %v, picks %v, active %v; want %v, %v, %v", kept, got.Picks, got.Active, want.Kept, want.Picks,
			want.Resampled,
		)
	}
}

func testOmega(t *testing.T, c vectors.Case) {
	var in struct {
		Alpha []float64
		N     []int
	}
	var want [][]float64
	c.Decode(t, &in, &want)
	for i, alpha := range in.Alpha {
		got := make([]float64, len(in.N))
		for j, n := range in.N {
			got[j] = advantage.SmoothingWeight(alpha, n)
		}
		vectors.Equal(t, "omega", got, want[i])
	}
}
