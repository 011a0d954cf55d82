package rl

import (
	"testing"

	"github.com/ropewalk/ropewalk/internal/testing/vectors"
	"github.com/ropewalk/ropewalk/rl/advantage"
)

// advDefault is *v, or fallback where the case does not say.
func advDefault(v *float64, fallback float64) float64 {
	if v == nil {
		return fallback
	}
	return *v
}

func testReinforcePP(t *testing.T, c vectors.Case) {
	var in struct {
		Rewards [][]float64 `json:"token_rewards"`
		Mask    [][]int32
		Gamma   *float64
	}
	want := advOutputs{}
	c.Decode(t, &in, &want)
	for _, gap := range []advantage.Gap{advantage.GapCarry, advantage.GapReset} {
		part := advOutputs{}
		if !want.take(t, string(gap), &part) {
			continue
		}
		returns, advantages, err := advantage.ReinforcePP{
			Gamma: advDefault(in.Gamma, 1), Gap: gap,
		}.Estimate(in.Rewards, in.Mask)
		if err != nil {
			t.Fatal(err)
		}
		part.rows(t, "returns", returns)
		part.rows(t, "advantages", advantages)
		part.done(t)
	}
	want.done(t)
}

func testReinforcePPBaseline(t *testing.T, c vectors.Case) {
	var in struct {
		Scores []float64
		UID    []string
		Mask   [][]int32
	}
	var want [][]float64
	c.Decode(t, &in, &want)
	got, err := advantage.ReinforcePPBaseline{}.Estimate(in.Scores, in.UID, in.Mask)
	if err != nil {
		t.Fatal(err)
	}
	vectors.Equal(t, "advantages", got, want)
}

func testGAE(t *testing.T, c vectors.Case) {
	var in struct {
		Rewards [][]float64 `json:"token_rewards"`
		Values  [][]float64
		Mask    [][]int32
		Gamma   *float64
		Lambda  *float64 `json:"lam"`
	}
	want := advOutputs{}
	c.Decode(t, &in, &want)
	settings := advantage.GAE{Gamma: advDefault(in.Gamma, 1), Lambda: advDefault(in.Lambda, 1)}
	got, err := settings.Estimate(in.Rewards, in.Values, in.Mask)
	if err != nil {
		t.Fatal(err)
	}
	settings.NoSkip = true
	old, err := settings.Estimate(in.Rewards, in.Values, in.Mask)
	if err != nil {
		t.Fatal(err)
	}
	want.rows(t, "raw_adv", got.Raw)
	want.rows(t, "returns", got.Returns)
	want.rows(t, "whitened", got.Whitened)
	want.rows(t, "raw_adv_no_skip", old.Raw)
	want.done(t)
}

func testAEPO(t *testing.T, c vectors.Case) {
	var in struct {
		Adv     []float64
		UID     []string
		Entropy [][]float64
		Mask    [][]int32
		A       float64
	}
	want := advOutputs{}
	c.Decode(t, &in, &want)
	rows := advAlone(len(in.Adv), func(i int) string { return advEntry(in.UID, i) })
	estimate := func(scope advantage.Scope, form advantage.Form) (z, out [][]float64) {
		z, out, err := advantage.AEPO{
			Weight: in.A, Scope: scope, Form: form,
		}.Estimate(rows, in.Adv, in.Entropy, in.Mask)
		if err != nil {
			t.Fatal(err)
		}
		return z, out
	}
	z, linear := estimate(advantage.ScopeGroup, advantage.FormLinear)
	want.rows(t, "z", z)
	want.rows(t, "linear", linear)
	_, power := estimate(advantage.ScopeGroup, advantage.FormPower)
	want.rows(t, "power_alg2", power)
	_, own := estimate(advantage.ScopeTrajectory, advantage.FormLinear)
	want.rows(t, "linear_per_trajectory", own)
	_, batch := estimate(advantage.ScopeBatch, advantage.FormLinear)
	want.rows(t, "linear_batch", batch)
	want.done(t)
}
