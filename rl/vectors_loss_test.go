package rl

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/internal/testing/vectors"
	"github.com/ropewalk/ropewalk/rl/loss"
)

var lossKinds = vectors.Kinds{
	"loss/ppo":                    testRegions,
	"loss/cispo":                  testRegions,
	"loss/sapo":                   testRegions,
	"loss/gppo":                   testRegions,
	"loss/aepo":                   testRegions,
	"loss/ppo_overflow_clamp":     testOverflow,
	"loss_batch/ppo":              testBatch,
	"loss_batch/cispo":            testBatch,
	"loss_batch/sapo":             testBatch,
	"loss_batch/gppo":             testBatch,
	"loss_batch/aepo":             testBatch,
	"loss/gspo":                   testSequence,
	"loss/gspo_token":             testSequence,
	"loss/sampo":                  testSequence,
	"loss/seqmask":                testSequenceMask,
	"loss/clip_cov":               testCovariance,
	"loss/tis_weight":             testTIS,
	"loss/value_clip":             testValueClip,
	"agg":                         testAggregate,
	"entropy/logits":              testLogits,
	"entropy/aggregate":           testEntropy,
	"kl/estimators":               testEstimators,
	"kl/expectation":              testExpectation,
	"kl/in_reward_and_controller": testKLReward,
}

// settings is how vectors write a loss's parameters; what a loss lacks is null or missing.
type settings struct {
	Low       float64  `json:"eps_low"`
	High      float64  `json:"eps_high"`
	Dual      *float64 `json:"dual_c"`
	TauPos    float64  `json:"tau_pos"`
	TauNeg    float64  `json:"tau_neg"`
	Beta1     *float64 `json:"beta1"`
	Beta2     *float64 `json:"beta2"`
	CISPOMask bool     `json:"cispo_mask"`
}

func orElse(v *float64, other float64) float64 {
	if v == nil {
		return other
	}
	return *v
}

// surrogate is the loss of a kind.
func (s settings) surrogate(t *testing.T, kind string) loss.Surrogate {
	t.Helper()
	var out loss.Surrogate
	switch kind {
	case "ppo":
		out = loss.PPOClip{Low: s.Low, High: s.High, Dual: orElse(s.Dual, 0)}
	case "cispo":
		out = loss.CISPO{Low: s.Low, High: s.High, Mask: s.CISPOMask}
	case "sapo":
		out = loss.SAPO{TauPositive: s.TauPos, TauNegative: s.TauNeg}
	case "gppo":
		out = loss.CEGPPO{Low: s.Low, High: s.High, Beta1: orElse(s.Beta1, 1), Beta2: orElse(s.Beta2, 1)}
	case "aepo":
		out = loss.AEPOClip{Low: s.Low, High: s.High, Dual: orElse(s.Dual, 0)}
	case "gspo", "sampo":
		out = loss.GSPO{Low: s.Low, High: s.High}
	case "gspo_token":
		out = loss.GSPOToken{Low: s.Low, High: s.High}
	default:
		t.Fatalf("no loss of kind %s", kind)
	}
	if err := out.Validate(); err != nil {
		t.Fatal(err)
	}
	return out
}

// positional reads the parameters of loss_batch, which are a list in the order of the kind's settings.
func positional(kind string, p []*float64) (s settings) {
	at := func(k int) *float64 {
		if k < len(p) {
			return p[k]
		}
		return nil
	}
	if kind == "sapo" {
		s.TauPos, s.TauNeg = *p[0], *p[1]
		return s
	}
	s.Low, s.High, s.Dual = *p[0], *p[1], at(2)
	if kind == "gppo" {
		s.Dual, s.Beta1, s.Beta2 = nil, at(2), at(3)
	}
	return s
}

// lastPart is the last component of a kind.
func lastPart(c vectors.Case) string {
	_, name, _ := strings.Cut(c.Kind(), "/")
	return name
}

// token evaluates one token by itself.
func token(t *testing.T, s loss.Surrogate, logp, old, advantage float64) (value, coef float64) {
	t.Helper()
	row := loss.Row[float64]{
		LogProbs: []float64{logp}, Old: []float64{old}, Advantages: []float64{advantage}, Mask: []int32{1}, Count: 1,
	}
	got := evaluateRows(
		t, loss.Objective{Policy: s, Aggregation: loss.Aggregation{Mode: loss.TokenSum}}, []loss.Row[float64]{row},
	)
	return got.Loss, got.Cotangents[0][0]
}

func evaluateRows(t *testing.T, o loss.Objective, rows []loss.Row[float64]) loss.Result[float64] {
	t.Helper()
	plan, err := loss.Prepare(o, rows, rand.New(rand.NewPCG(1, 2)))
	if err != nil {
		t.Fatal(err)
	}
	for i := range plan.Marks {
		rows[i].Marks = plan.Marks[i]
	}
	var e loss.Evaluator[float64]
	got, err := e.Evaluate(o, rows, plan)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func testRegions(t *testing.T, c vectors.Case) {
	var in struct {
		settings
		Kind   string
		Points []struct{ Ratio, Adv float64 }
	}
	var want []struct {
		Ratio, Adv float64
		Loss       float64
		Old        float64 `json:"old_logp"`
		Coef       float64 `json:"dloss_dlogp"`
	}
	c.Decode(t, &in, &want)
	s := in.surrogate(t, in.Kind)
	if len(want) != len(in.Points) {
		t.Fatalf("%d outputs for %d points", len(want), len(in.Points))
	}
	for i, p := range in.Points {
		value, coef := token(t, s, want[i].Old+math.Log(p.Ratio), want[i].Old, p.Adv)
		vectors.Equal(t, "ratio, advantage, loss and coefficient", []float64{p.Ratio, p.Adv, value, coef},
			[]float64{want[i].Ratio, want[i].Adv, want[i].Loss, want[i].Coef})
	}
}

func testOverflow(t *testing.T, c vectors.Case) {
	var in struct {
		settings
		Clamp  float64
		Points [][2]float64
	}
	var want []struct {
		LogRatio float64 `json:"log_ratio"`
		Adv      float64
		Loss     float64
		Coef     float64 `json:"dloss_dlogp"`
	}
	c.Decode(t, &in, &want)
	if in.Clamp != loss.LogRatioClamp {
		t.Fatalf("the vector clamps at %g, the loss at %d", in.Clamp, loss.LogRatioClamp)
	}
	for i, p := range in.Points {
		value, coef := token(t, in.surrogate(t, "ppo"), p[0]-50, -50, p[1])
		vectors.Equal(t, "log-ratio, advantage, loss and coefficient", []float64{p[0], p[1], value, coef},
			[]float64{want[i].LogRatio, want[i].Adv, want[i].Loss, want[i].Coef})
	}
}

func lossRows(old, logp, adv [][]float64, mask [][]int32) []loss.Row[float64] {
	rows := make([]loss.Row[float64], len(old))
	for i := range rows {
		rows[i] = loss.Row[float64]{LogProbs: logp[i], Old: old[i], Advantages: adv[i], Mask: mask[i], Count: 1}
	}
	return rows
}

func testBatch(t *testing.T, c vectors.Case) {
	var in struct {
		Kind           string
		Params         []*float64
		Old, Logp, Adv [][]float64
		Mask           [][]int32
		Horizon        int
	}
	var want map[string]struct {
		Loss float64
		Grad [][]float64 `json:"grad_logp"`
	}
	c.Decode(t, &in, &want)
	s := positional(in.Kind, in.Params).surrogate(t, in.Kind)
	rows := lossRows(in.Old, in.Logp, in.Adv, in.Mask)
	for mode, w := range want {
		got := evaluateRows(t, loss.Objective{Policy: s, Aggregation: aggregation(mode, in.Horizon, in.Mask)}, rows)
		vectors.Equal(t, mode, []float64{got.Loss}, []float64{w.Loss})
		vectors.Equal(t, mode, got.Cotangents, w.Grad)
	}
}

// numbers is a number or a list of them.
type numbers []float64

func (n *numbers) UnmarshalJSON(raw []byte) error {
	var one float64
	if json.Unmarshal(raw, &one) == nil {
		*n = numbers{one}
		return nil
	}
	return json.Unmarshal(raw, (*[]float64)(n))
}

// perToken is one advantage a row, a list of tokens' or a table of them.
type perToken struct{ raw json.RawMessage }

func (p *perToken) UnmarshalJSON(raw []byte) error {
	p.raw = slices.Clone(raw)
	return nil
}

// table spreads the advantages over the tokens of masks.
func (p perToken) table(t *testing.T, masks [][]int32) [][]float64 {
	t.Helper()
	var table [][]float64
	if json.Unmarshal(p.raw, &table) == nil {
		return table
	}
	var list []float64
	if err := json.Unmarshal(p.raw, &list); err != nil {
		t.Fatal(err)
	}
	return spread(list, masks)
}

func spread(perRow []float64, masks [][]int32) [][]float64 {
	out := make([][]float64, len(masks))
	for i, mask := range masks {
		for range mask {
			out[i] = append(out[i], perRow[i])
		}
	}
	return out
}

// sequenceWant is what the vectors of sequence losses give, under a mode or at the top.
type sequenceWant struct {
	Ratio   numbers     `json:"seq_ratio"`
	Loss    *float64    `json:"loss"`
	Grad    [][]float64 `json:"grad_logp"`
	Clipped []int
}

func testSequence(t *testing.T, c vectors.Case) {
	var in struct {
		settings
		Old, Logp [][]float64
		Adv       *perToken
		Episode   []float64 `json:"adv_episode"`
		Step      []float64 `json:"adv_step"`
		Omega     *float64
		Mask      [][]int32
		Horizon   int
	}
	var want map[string]json.RawMessage
	var top sequenceWant
	c.Decode(t, &in, &want)
	c.Decode(t, &in, &top)
	var adv [][]float64
	if in.Adv != nil {
		adv = in.Adv.table(t, in.Mask)
	} else {
		combined := make([]float64, len(in.Episode))
		for i := range combined {
			combined[i] = in.Episode[i] + orElse(in.Omega, 1)*in.Step[i]
		}
		adv = spread(combined, in.Mask)
	}
	if raw, ok := want["adv"]; ok {
		var w perToken
		decode(t, raw, &w)
		vectors.Equal(t, "adv", adv, w.table(t, in.Mask))
	}
	s := in.surrogate(t, lastPart(c))
	check := func(mode string, w sequenceWant) {
		got := evaluateRows(
			t, loss.Objective{Policy: s, Aggregation: aggregation(mode, in.Horizon, in.Mask)},
			lossRows(in.Old, in.Logp, adv, in.Mask),
		)
		if w.Loss != nil {
			vectors.Equal(t, mode+" loss", []float64{got.Loss}, []float64{*w.Loss})
		}
		if w.Grad != nil {
			vectors.Equal(t, mode+" gradient", got.Cotangents, w.Grad)
		}
		checkSequences(t, s.Bounds(), in.Old, in.Logp, adv, in.Mask, w)
	}
	check(string(loss.DefaultMode(s)), top)
	for mode, raw := range want {
		if slices.Contains(loss.Modes(), loss.Mode(mode)) {
			var w sequenceWant
			decode(t, raw, &w)
			check(mode, w)
			continue
		}
		if !slices.Contains([]string{"adv", "seq_ratio", "loss", "grad_logp", "clipped"}, mode) {
			t.Errorf("output %s is not compared", mode)
		}
	}
}

// checkSequences compares each row's ratio and whether it is clipped.
func checkSequences(t *testing.T, b loss.Bounds, old, logp, adv [][]float64, mask [][]int32, want sequenceWant) {
	t.Helper()
	var ratios, clips, wantClips []float64
	for i := range mask {
		sum, mean, n := 0.0, 0.0, 0.0
		for k, m := range mask[i] {
			sum += float64(m) * (logp[i][k] - old[i][k])
			mean += float64(m) * adv[i][k]
			n += float64(m)
		}
		s, clip := loss.SequenceRatio(sum/max(n, 1)), 0.0
		if n > 0 && (mean > 0 && s > b.High || mean < 0 && s < b.Low) {
			clip = 1
		}
		ratios, clips = append(ratios, s), append(clips, clip)
	}
	if want.Ratio != nil {
		vectors.Equal(t, "seq_ratio", ratios, want.Ratio)
	}
	for _, v := range want.Clipped {
		wantClips = append(wantClips, float64(v))
	}
	if wantClips != nil {
		vectors.Equal(t, "clipped", clips, wantClips)
	}
}

func decode(t *testing.T, raw json.RawMessage, out any) {
	t.Helper()
	if err := json.Unmarshal(raw, out); err != nil {
		t.Fatal(err)
	}
}

func testSequenceMask(t *testing.T, c vectors.Case) {
	var in struct {
		settings
		Old, Logp [][]float64
		Adv       perToken
		Mask      [][]int32
		Delta     float64
		Eps       *float64
	}
	var want struct {
		Drift  []float64 `json:"mean_neg_log_ratio"`
		Keep   []float64
		Shrunk float64 `json:"token_mean_shrunk_denominator"`
		Fixed  float64 `json:"token_mean_fixed_denominator"`
	}
	c.Decode(t, &in, &want)
	in.Low, in.High = orElse(in.Eps, in.Low), orElse(in.Eps, in.High)
	rows := lossRows(in.Old, in.Logp, in.Adv.table(t, in.Mask), in.Mask)
	o := loss.Objective{
		Policy: in.surrogate(t, "ppo"), Aggregation: loss.Aggregation{Mode: loss.TokenMean},
		SequenceMask: &loss.SequenceMask{Delta: in.Delta},
	}
	var drift, keep []float64
	for i, r := range rows {
		advantage, mean := 0.0, 0.0
		if n := float64(r.Tokens()); n > 0 {
			for k, m := range r.Mask {
				advantage += float64(m) * r.Advantages[k] / n
				mean += float64(m) * (r.LogProbs[k] - r.Old[k]) / n
			}
		}
		drift, keep = append(drift, -mean), append(keep, 0)
		if o.SequenceMask.Keep(advantage, mean) {
			keep[i] = 1
		}
	}
	vectors.Equal(t, "mean_neg_log_ratio", drift, want.Drift)
	vectors.Equal(t, "keep", keep, want.Keep)
	vectors.Equal(t, "fixed", []float64{evaluateRows(t, o, rows).Loss}, []float64{want.Fixed})
	o.SequenceMask.Shrink = true
	vectors.Equal(t, "shrunk", []float64{evaluateRows(t, o, rows).Loss}, []float64{want.Shrunk})
}

func testTIS(t *testing.T, c vectors.Case) {
	var in struct {
		Old     []float64 `json:"train_engine_old_logp"`
		Rollout []float64 `json:"rollout_engine_logp"`
		Cap     float64
	}
	var want []float64
	c.Decode(t, &in, &want)
	w := loss.TIS{Cap: in.Cap}
	if err := w.Validate(); err != nil {
		t.Fatal(err)
	}
	var got []float64
	for i := range in.Old {
		got = append(got, w.Weight(in.Old[i], in.Rollout[i]))
	}
	vectors.Equal(t, "weight", got, want)
}

func testValueClip(t *testing.T, c vectors.Case) {
	var in struct {
		V, Returns []float64
		Old        []float64 `json:"v_old"`
		Mask       []int32
		Clip       float64
	}
	var want struct {
		Squares []float64 `json:"per_token_sq"`
		Mean    float64   `json:"token_mean"`
	}
	c.Decode(t, &in, &want)
	if in.Mask == nil {
		in.Mask = slices.Repeat([]int32{1}, len(in.V))
	}
	row := loss.ValueRow[float64]{Values: in.V, Old: in.Old, Returns: in.Returns, Mask: in.Mask, Count: 1}
	d, err := loss.Aggregation{Mode: loss.TokenMean}.Denominator([][]int32{in.Mask}, nil)
	if err != nil {
		t.Fatal(err)
	}
	value := func(v loss.ValueClip, row loss.ValueRow[float64], d loss.Denominator) float64 {
		var e loss.Evaluator[float64]
		got, err := e.EvaluateValues(v, []loss.ValueRow[float64]{row}, d)
		if err != nil {
			t.Fatal(err)
		}
		return got.Loss
	}
	vectors.Equal(t, "token_mean", []float64{value(loss.ValueClip{Clip: in.Clip}, row, d)}, []float64{want.Mean})
	one, err := loss.Aggregation{Mode: loss.TokenSum}.Denominator([][]int32{{1}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var squares []float64
	for k := range in.V {
		single := loss.ValueRow[float64]{
			Values: in.V[k : k+1], Old: in.Old[k : k+1], Returns: in.Returns[k : k+1], Mask: []int32{1}, Count: 1,
		}
		squares = append(squares, value(loss.ValueClip{Clip: in.Clip, NoHalf: true}, single, one))
	}
	vectors.Equal(t, "per_token_sq", squares, want.Squares)
}

func testLogits(t *testing.T, c vectors.Case) {
	var in struct {
		Logits      []float64
		Temperature *float64
	}
	var want struct {
		Probs    []float64
		Entropy  float64
		Gradient []float64 `json:"dH_dlogits"`
	}
	c.Decode(t, &in, &want)
	probs, gradient := make([]float64, len(in.Logits)), make([]float64, len(in.Logits))
	h, err := loss.LogitEntropy(in.Logits, orElse(in.Temperature, 1), probs, gradient)
	if err != nil {
		t.Fatal(err)
	}
	vectors.Equal(t, "entropy", []float64{h}, []float64{want.Entropy})
	vectors.Equal(t, "probs", probs, want.Probs)
	vectors.Equal(t, "dH_dlogits", gradient, want.Gradient)
}

func testKLReward(t *testing.T, c vectors.Case) {
	var in struct {
		Scores, Old, Ref []float64
		Mask             []int32
		Beta             float64
		Kind             loss.Estimator `json:"kl_kind"`
		Controller       struct {
			Target, Horizon float64
			Steps           int `json:"n_steps"`
			Init            float64
			Current         []float64
		}
	}
	var want struct {
		Rewards []float64 `json:"token_rewards"`
		Mean    float64   `json:"mean_kl"`
		Beta    []float64 `json:"beta_after"`
	}
	c.Decode(t, &in, &want)
	if in.Mask == nil {
		in.Mask = slices.Repeat([]int32{1}, len(in.Scores))
	}
	rewards, mean, err := loss.KLReward{Estimator: in.Kind, Beta: in.Beta}.Apply(
		[][]float64{in.Scores}, [][]float64{in.Old}, [][]float64{in.Ref}, [][]int32{in.Mask},
	)
	if err != nil {
		t.Fatal(err)
	}
	vectors.Equal(t, "token_rewards", rewards, [][]float64{want.Rewards})
	vectors.Equal(t, "mean_kl", []float64{mean}, []float64{want.Mean})
	k := loss.AdaptiveKL{Target: in.Controller.Target, Horizon: in.Controller.Horizon}
	if err := k.Validate(); err != nil {
		t.Fatal(err)
	}
	var after []float64
	for _, kl := range in.Controller.Current {
		after = append(after, k.Next(in.Controller.Init, kl, in.Controller.Steps))
	}
	vectors.Equal(t, "beta_after", after, want.Beta)
}

// aggregation is a mode of the vectors; a missing horizon is the width of the masks.
func aggregation(mode string, horizon int, masks [][]int32) loss.Aggregation {
	if mode == legacyName {
		mode = string(loss.NormLegacy)
	}
	if horizon == 0 && len(masks) > 0 {
		horizon = len(masks[0])
	}
	return loss.Aggregation{Mode: loss.Mode(mode), Horizon: horizon}
}

// legacyName is what the vectors call norm_legacy.
const legacyName = "sum-norm-noseq"

// aggregate gives the aggregate of rows [from, to) under the denominator of all rows, or, locally,
// of those rows alone.
func aggregate(
	t *testing.T, mode string, horizon int, values [][]float64, masks [][]int32, from, to int, local bool,
) float64 {
	t.Helper()
	counted := masks
	if local {
		counted = masks[from:to]
	}
	d, err := aggregation(mode, horizon, masks).Denominator(counted, nil)
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
			vectors.Equal(
				t, mode, []float64{aggregate(t, mode, in.Horizon, in.Loss, in.Mask, 0, all, false)}, []float64{full},
			)
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
		for _, e := range []loss.Estimator{loss.K1, loss.AbsKL, loss.K2, loss.K3} {
			v, _, err := e.Estimate(math.Log(p), math.Log(in.Q[i]))
			if err != nil {
				t.Fatal(err)
			}
			got["E_"+string(e)] += p * v
		}
	}
	for name, w := range want {
		v, ok := got[name]
		if !ok {
			t.Errorf("output %s is not compared", name)
		}
		vectors.Equal(t, name, []float64{v}, []float64{w})
	}
}
