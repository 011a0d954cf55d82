package rl

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/internal/testing/vectors"
	"github.com/ropewalk/ropewalk/rl/diagnose"
	"github.com/ropewalk/ropewalk/rl/loss"
)

var diagnoseKinds = vectors.Kinds{
	"diag/pass_at_k":                    testPassAtK,
	"diag/ratio_out_of_bounds":          testRatios,
	"diag/eight_groups":                 testEightGroups,
	"diag/zero_advantage_task_fraction": testZeroAdvantage,
}

func testPassAtK(t *testing.T, c vectors.Case) {
	type task struct{ N, C, K int }
	var in []task
	var want []float64
	if c.Has("n") { // one task in place of a list
		in, want = make([]task, 1), make([]float64, 1)
		c.Decode(t, &in[0], &want[0])
	} else {
		c.Decode(t, &in, &want)
	}
	var got []float64
	for _, x := range in {
		p, err := diagnose.PassAtK(x.N, x.C, x.K)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, p)
	}
	vectors.Equal(t, "pass@k", got, want)
}

// testRatios compares what a loss counts of its ratios.
func testRatios(t *testing.T, c vectors.Case) {
	var in struct {
		Ratio, Adv []float64
		Mask       []int32
		Low        float64  `json:"eps_low"`
		High       float64  `json:"eps_high"`
		Dual       *float64 `json:"dual_c"`
	}
	var want map[string]float64
	c.Decode(t, &in, &want)
	row := loss.Row[float64]{Old: make([]float64, len(in.Ratio)), Advantages: in.Adv, Mask: in.Mask, Count: 1}
	for _, r := range in.Ratio {
		row.LogProbs = append(row.LogProbs, math.Log(r))
		if in.Mask == nil {
			row.Mask = append(row.Mask, 1)
		}
	}
	tally := func(dual *float64) loss.Tally {
		return evaluateRows(t, loss.Objective{
			Policy:      loss.PPOClip{Low: in.Low, High: in.High, Dual: orElse(dual, 0)},
			Aggregation: loss.Aggregation{Mode: loss.TokenSum},
		}, []loss.Row[float64]{row}).Tally
	}
	plain := tally(nil)
	o := plain.OutOfBounds()
	got := map[string]float64{"low_neg": o.NegativeBelow, "low_pos": o.PositiveBelow, "high_neg": o.NegativeAbove,
		"high_pos": o.PositiveAbove, "effective_clip_fraction": plain.ClipFraction()}
	for name, value := range want {
		// The dual clip's C is in the inputs or, where it is not, in the output's name.
		if suffix, ok := strings.CutPrefix(name, "dual_clip_fraction"); ok {
			dual, err := strconv.ParseFloat(strings.TrimPrefix(suffix, "_C"), 64)
			if in.Dual != nil {
				dual = *in.Dual
			} else if err != nil {
				t.Errorf("output %s names no C", name)
				continue
			}
			got[name] = tally(&dual).LowerClipFraction()
		}
		v, ok := got[name]
		if !ok {
			t.Errorf("no test checks output %s", name)
			continue
		}
		vectors.Equal(t, name, []float64{v}, []float64{value})
	}
}

func testEightGroups(t *testing.T, c vectors.Case) {
	var in struct {
		Rows []struct {
			Adv     float64
			Ratio   float64 `json:"is_ratio"`
			Entropy float64
			KL      float64
		}
		Threshold *float64 `json:"entropy_threshold"`
	}
	var want map[string]map[string]float64
	c.Decode(t, &in, &want)
	var samples []diagnose.Sample
	for _, r := range in.Rows {
		samples = append(samples, diagnose.Sample{Advantage: r.Adv, Ratio: r.Ratio, Entropy: r.Entropy, KL: r.KL})
	}
	threshold := diagnose.MedianEntropy(samples)
	if in.Threshold != nil {
		threshold = *in.Threshold
	}
	groups, err := diagnose.NewEightGroups(threshold)
	if err != nil {
		t.Fatal(err)
	}
	if err := groups.Add(samples...); err != nil {
		t.Fatal(err)
	}
	got := map[string]map[string]float64{"count": {}, "kl_share": {}, "mean_ratio": {}}
	for _, g := range groups.Report() {
		got["count"][g.Name()] = float64(g.Count)
		got["kl_share"][g.Name()] = g.KLShare
		got["mean_ratio"][g.Name()] = g.Ratio
	}
	for field, wanted := range want {
		if got[field] == nil {
			t.Errorf("no test checks output %s", field)
			continue
		}
		for name := range wanted {
			if _, ok := got[field][name]; !ok {
				t.Errorf("%s has no group %s", field, name)
			}
		}
		for name, v := range got[field] { // a group that is left out is empty
			vectors.Equal(t, field+" "+name, []float64{v}, []float64{wanted[name]})
		}
	}
}

func testZeroAdvantage(t *testing.T, c vectors.Case) {
	var in struct {
		Groups      [][]float64 `json:"group_rewards"`
		MinVariance float64     `json:"var_threshold"`
	}
	var raw json.RawMessage
	c.Decode(t, &in, &raw)
	z := diagnose.ZeroAdvantage{MinVariance: in.MinVariance}
	if err := z.Add(in.Groups...); err != nil {
		t.Fatal(err)
	}
	report := z.Report()
	want := map[string]float64{}
	if err := json.Unmarshal(raw, &want); err != nil { // a number stands for the fraction alone
		var fraction float64
		if err := json.Unmarshal(raw, &fraction); err != nil {
			t.Fatal(err)
		}
		want["fraction"] = fraction
	}
	got := map[string]float64{"fraction": report.Fraction, "solve_all": report.SolveAll, "solve_none": report.SolveNone}
	for name, value := range want {
		v, ok := got[name]
		if !ok {
			t.Errorf("no test checks output %s", name)
			continue
		}
		vectors.Equal(t, name, []float64{v}, []float64{value})
	}
}
