package rl

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/ropewalk/ropewalk/rl/internal/vectors"
	"github.com/ropewalk/ropewalk/rl/loss"
)

var lossKinds = vectors.Kinds{
	"loss/ppo":                testRegions,
	"loss/ppo_overflow_clamp": testOverflow,
	"loss_batch/ppo":          testBatch,
	"agg":                     testAggregate,
	"entropy/aggregate":       testEntropy,
	"kl/estimators":           testEstimators,
	"kl/expectation":          testExpectation,
}

// clip is how vectors write a PPO clip; null is no dual clip.
type clip struct {
	Low  float64  `json:"eps_low"`
	High float64  `json:"eps_high"`
	Dual *float64 `json:"dual_c"`
}

func (c clip) loss() loss.PPOClip {
	p := loss.PPOClip{Low: c.Low, High: c.High}
	if c.Dual != nil {
		p.Dual = *c.Dual
	}
	return p
}

func testRegions(t *testing.T, c vectors.Case) {
	var in struct {
		clip
		Points []struct{ Ratio, Adv float64 }
	}
	var want []struct {
		Loss float64
		Old  float64 `json:"old_logp"`
		Coef float64 `json:"dloss_dlogp"`
	}
	c.Decode(t, &in, &want)
	ppo := in.loss()
	if err := ppo.Validate(); err != nil {
		t.Fatal(err)
	}
	for i, p := range in.Points {
		row := loss.Row{LogProbs: []float64{want[i].Old + math.Log(p.Ratio)}, Old: []float64{want[i].Old}, Advantages: []float64{p.Adv}, Mask: []int32{1}, Count: 1}
		points := make([]loss.Point, 1)
		ppo.Points(row, points)
		vectors.Equal(t, "loss and coefficient", []float64{points[0].Loss, points[0].Coef}, []float64{want[i].Loss, want[i].Coef})
	}
}

func testOverflow(t *testing.T, c vectors.Case) {
	var in struct {
		clip
		Clamp  float64
		Points [][2]float64
	}
	var want []struct {
		Loss float64
		Coef float64 `json:"dloss_dlogp"`
	}
	c.Decode(t, &in, &want)
	if in.Clamp != loss.LogRatioClamp {
		t.Fatalf("the vector clamps at %g, the loss at %d", in.Clamp, loss.LogRatioClamp)
	}
	for i, p := range in.Points {
		got := in.loss().Token(p[0], p[1])
		vectors.Equal(t, "loss and coefficient", []float64{got.Loss, got.Coef}, []float64{want[i].Loss, want[i].Coef})
	}
}

func testBatch(t *testing.T, c vectors.Case) {
	var in struct {
		Params         [3]*float64
		Old, Logp, Adv [][]float64
		Mask           [][]int32
	}
	var want map[loss.Mode]struct {
		Loss float64
		Grad [][]float64 `json:"grad_logp"`
	}
	c.Decode(t, &in, &want)
	ppo := clip{Low: *in.Params[0], High: *in.Params[1], Dual: in.Params[2]}.loss()
	rows := make([]loss.Row, len(in.Old))
	for i := range rows {
		rows[i] = loss.Row{LogProbs: in.Logp[i], Old: in.Old[i], Advantages: in.Adv[i], Mask: in.Mask[i], Count: 1}
	}
	for mode, w := range want {
		d, err := loss.Aggregation{Mode: mode, Horizon: len(in.Mask[0])}.Denominator(in.Mask, nil)
		if err != nil {
			t.Fatal(err)
		}
		got, err := loss.Evaluate(ppo, rows, d)
		if err != nil {
			t.Fatal(err)
		}
		vectors.Equal(t, string(mode), []float64{got.Loss}, []float64{w.Loss})
		vectors.EqualRows(t, string(mode), got.Cotangents, w.Grad)
	}
}

// legacyName is what the vectors call norm_legacy.
const legacyName = "sum-norm-noseq"

// aggregate gives the aggregate of rows [from, to) under the denominator of all rows, or, locally,
// of those rows alone.
func aggregate(t *testing.T, mode string, horizon int, values [][]float64, masks [][]int32, from, to int, local bool) float64 {
	t.Helper()
	if mode == legacyName {
		mode = string(loss.NormLegacy)
	}
	counted := masks
	if local {
		counted = masks[from:to]
	}
	d, err := loss.Aggregation{Mode: loss.Mode(mode), Horizon: horizon}.Denominator(counted, nil)
	if err != nil {
		t.Fatal(err)
	}
	v, err := d.Aggregate(values[from:to], masks[from:to], nil)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func testAggregate(t *testing.T, c vectors.Case) {
	var in struct {
		Loss    [][]float64
		Mask    [][]int32
		Horizon int
		Exact   [][2]int `json:"splits_exact"`
		Naive   [][2]int `json:"splits_naive"`
	}
	var want map[string]json.RawMessage
	c.Decode(t, &in, &want)
	if in.Horizon == 0 {
		in.Horizon = len(in.Mask[0])
	}
	all := len(in.Loss)
	for mode, raw := range want {
		var full float64
		if json.Unmarshal(raw, &full) == nil {
			vectors.Equal(t, mode, []float64{aggregate(t, mode, in.Horizon, in.Loss, in.Mask, 0, all, false)}, []float64{full})
			continue
		}
		var w struct {
			Full  float64
			Naive float64 `json:"naive_mean_of_2_microbatch_means"`
		}
		if err := json.Unmarshal(raw, &w); err != nil {
			t.Fatal(err)
		}
		exact, naive := 0.0, 0.0
		for _, s := range in.Exact {
			exact += aggregate(t, mode, in.Horizon, in.Loss, in.Mask, s[0], s[1], false)
		}
		for _, s := range in.Naive {
			naive += aggregate(t, mode, in.Horizon, in.Loss, in.Mask, s[0], s[1], true) / float64(len(in.Naive))
		}
		whole := aggregate(t, mode, in.Horizon, in.Loss, in.Mask, 0, all, false)
		vectors.Equal(t, mode, []float64{whole, exact, naive}, []float64{w.Full, w.Full, w.Naive})
	}
}

func testEntropy(t *testing.T, c vectors.Case) {
	var in struct {
		Entropy [][]float64
		Mask    [][]int32
		Horizon int
	}
	var want map[string]float64
	c.Decode(t, &in, &want)
	if in.Horizon == 0 {
		in.Horizon = len(in.Mask[0])
	}
	for mode, w := range want {
		got := aggregate(t, mode, in.Horizon, in.Entropy, in.Mask, 0, len(in.Mask), false)
		vectors.Equal(t, mode, []float64{got}, []float64{w})
	}
}

func testEstimators(t *testing.T, c vectors.Case) {
	var in struct{ Logp, Ref []float64 }
	var want map[loss.Estimator]struct {
		Value    []float64
		Gradient []float64 `json:"dvalue_dlogp"`
	}
	c.Decode(t, &in, &want)
	for name, w := range want {
		var values, gradients []float64
		for i := range in.Logp {
			v, g, err := name.Estimate(in.Logp[i], in.Ref[i])
			if err != nil {
				t.Fatal(err)
			}
			values, gradients = append(values, v), append(gradients, g)
		}
		vectors.Equal(t, string(name)+" value", values, w.Value)
		vectors.Equal(t, string(name)+" gradient", gradients, w.Gradient)
	}
}

func testExpectation(t *testing.T, c vectors.Case) {
	var in struct{ P, Q []float64 }
	var want map[string]float64
	c.Decode(t, &in, &want)
	got := map[string]float64{}
	for i, p := range in.P {
		got["kl"] += p * math.Log(p/in.Q[i])
		for _, e := range []loss.Estimator{loss.K1, loss.K2, loss.K3} {
			v, _, err := e.Estimate(math.Log(p), math.Log(in.Q[i]))
			if err != nil {
				t.Fatal(err)
			}
			got["E_"+string(e)] += p * v
		}
	}
	for name, w := range want {
		vectors.Equal(t, name, []float64{got[name]}, []float64{w})
	}
}
