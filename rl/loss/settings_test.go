package loss_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/rl/loss"
)

func TestSettingsNameTheBadField(t *testing.T) {
	type valid interface{ Validate() error }
	mean := loss.Aggregation{Mode: loss.TokenMean}
	nan, inf := math.NaN(), math.Inf(1)
	for want, settings := range map[string][]valid{
		"clip_low": {
			loss.PPOClip{Low: -0.1}, loss.CISPO{Low: 2}, loss.GSPO{Low: nan}, loss.GSPOToken{Low: 2}, loss.GPPO{Low: 2},
			loss.CEGPPO{Low: 2}, loss.AEPOClip{Low: 2}, loss.CISPO{Low: 2, High: inf},
		},
		"clip_high": {
			loss.PPOClip{High: inf}, loss.CISPO{High: -1},
			loss.ClipCov{High: nan, Rule: loss.CovarianceRule{Ratio: 1, Upper: 1}},
		},
		"dual_clip":           {loss.PPOClip{Dual: 1}, loss.AEPOClip{Dual: -2}},
		"tau_positive":        {loss.SAPO{TauNegative: 1}},
		"tau_negative":        {loss.SAPO{TauPositive: 1, TauNegative: inf}},
		"beta1":               {loss.CEGPPO{Beta1: -1}},
		"beta2":               {loss.CEGPPO{Beta2: nan}},
		"cov_lower":           {loss.ClipCov{Rule: loss.CovarianceRule{Ratio: 1, Lower: 2, Upper: 1}}},
		"cov_ratio":           {loss.KLCov{}, loss.ClipCov{Rule: loss.CovarianceRule{Upper: 1}}},
		"cov_scope":           {loss.KLCov{Rule: loss.CovarianceRule{Ratio: 1, Scope: "row"}}},
		"cov bounds":          {loss.KLCov{Rule: loss.CovarianceRule{Ratio: 1, Upper: nan}}},
		"kl_cov coefficient":  {loss.KLCov{Coefficient: -1}},
		"gamma":               {loss.SelfImitation{Policy: loss.PPOClip{}, Gamma: -1}},
		"needs a policy loss": {loss.SelfImitation{}},
		"delta":               {loss.SequenceMask{Delta: nan}},
		"tis cap":             {loss.TIS{}},
		"kl estimator":        {loss.KL{Estimator: "k4"}, loss.KLReward{Estimator: "k1++"}},
		"kl coefficient":      {loss.KL{Estimator: loss.K1, Coefficient: -1}},
		"kl beta":             {loss.KLReward{Beta: nan}},
		"kl target":           {loss.AdaptiveKL{Horizon: 1}},
		"kl horizon":          {loss.AdaptiveKL{Target: 1, Horizon: -1}},
		"entropy coefficient": {loss.Entropy{Coefficient: -1}},
		"value_clip":          {loss.ValueClip{Clip: -1}},
		"aggregation":         {loss.Objective{}, loss.Objective{Policy: loss.PPOClip{}}},
		"an objective needs":  {loss.Objective{Aggregation: mean}},
		"sequence_mask needs": {
			loss.Objective{Policy: loss.BehaviourCloning{}, Aggregation: mean, SequenceMask: &loss.SequenceMask{}},
		},
		"tis needs": {
			loss.Objective{KL: &loss.KL{Estimator: loss.K1}, Aggregation: mean, TIS: &loss.TIS{Cap: 1}},
		},
	} {
		for _, s := range settings {
			if err := s.Validate(); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%#v: got %v, want it to name %q", s, err, want)
			}
		}
	}
	for _, s := range []valid{loss.CISPO{Low: 1, High: inf}, loss.AdaptiveKL{}, loss.KLReward{}, loss.ValueClip{},
		loss.BehaviourCloning{}, loss.KL{Estimator: "abs+"}} {
		if err := s.Validate(); err != nil {
			t.Errorf("%#v: %v", s, err)
		}
	}
}

func TestSequenceMaskDropsRows(t *testing.T) {
	row := func(l, a float64) loss.Row[float64] {
		return loss.Row[float64]{
			LogProbs: []float64{l - 1, l - 1}, Old: []float64{-1, -1}, Advantages: []float64{a, a}, Mask: []int32{1, 1},
			Count: 1,
		}
	}
	rows := []loss.Row[float64]{row(-0.5, 1), row(-0.5, -1), row(0.05, -1)}
	for _, shrink := range []bool{false, true} {
		o := loss.Objective{
			Policy: loss.PPOClip{Low: 0.2, High: 0.2}, Aggregation: loss.Aggregation{Mode: loss.TokenMean},
			SequenceMask: &loss.SequenceMask{Delta: 0.1, Shrink: shrink},
		}
		plan, err := loss.Prepare(o, rows, nil)
		if err != nil {
			t.Fatal(err)
		}
		got, err := new(loss.Evaluator[float64]).Evaluate(o, rows, plan)
		if err != nil {
			t.Fatal(err)
		}
		divisor := 3.0
		if shrink {
			divisor = 2
		}
		want := (-math.Exp(-0.5) + math.Exp(0.05)) / divisor
		if !closeTo(got.Loss, want, 1e-12) || got.Tally.Dropped != 1 || got.Cotangents[1][0] != 0 {
			t.Errorf(
				"shrink %v: loss %g, want %g; %d rows dropped, cotangent %g", shrink, got.Loss, want, got.Tally.Dropped,
				got.Cotangents[1][0],
			)
		}
	}
}

// Ranks count their own rows and add the counts up.
func TestDenominatorsAddUpOverRanks(t *testing.T) {
	masks := [][]int32{{1, 1, 1}, {1, 0, 0}, {0, 0, 0}}
	for _, mode := range loss.Modes() {
		a := loss.Aggregation{Mode: mode, Horizon: 5}
		whole, err := a.Denominator(masks, []int32{1, 2, 3})
		if err != nil {
			t.Fatal(err)
		}
		first, err := a.Denominator(masks[:1], []int32{1})
		if err != nil {
			t.Fatal(err)
		}
		second, err := a.Denominator(masks[1:], []int32{2, 3})
		if err != nil {
			t.Fatal(err)
		}
		first.Add(second)
		if first != whole {
			t.Errorf("%s: ranks count %+v, the whole is %+v", mode, first, whole)
		}
	}
}

func TestLogitEntropy(t *testing.T) {
	logits := []float32{1, 0, float32(math.Inf(-1)), 0.5}
	gradient := make([]float64, 4)
	h, err := loss.LogitEntropy(logits, 0.7, nil, gradient)
	if err != nil {
		t.Fatal(err)
	}
	for j := range logits {
		const step = 1e-3
		up, down := slices.Clone(logits), slices.Clone(logits)
		up[j], down[j] = up[j]+step, down[j]-step
		a, errA := loss.LogitEntropy(up, 0.7, nil, nil)
		b, errB := loss.LogitEntropy(down, 0.7, nil, nil)
		if errA != nil || errB != nil {
			t.Fatal(errA, errB)
		}
		if want := (a - b) / (2 * step); math.Abs(gradient[j]-want) > 1e-4 {
			t.Errorf("dH/dlogit %d is %g, difference %g", j, gradient[j], want)
		}
	}
	if h <= 0 || h >= math.Log(3) {
		t.Errorf("entropy of three logits is %g", h)
	}
	for name, bad := range map[string][]float64{"none": nil, "NaN": {math.NaN()}, "+Inf": {math.Inf(1)},
		"no mass": {math.Inf(-1)}} {
		if _, err := loss.LogitEntropy(bad, 1, nil, nil); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
	if _, err := loss.LogitEntropy([]float64{1}, 0, nil, nil); err == nil {
		t.Error("temperature 0 was accepted")
	}
}

func TestKLReward(t *testing.T) {
	k := loss.KLReward{Beta: 0.5}
	rewards := [][]float64{{1, 0, 2}, {3}}
	out, mean, err := k.Apply(
		rewards, [][]float64{{-1, math.NaN(), -2}, {math.NaN()}}, [][]float64{{-2, 0, -2}, {0}},
		[][]int32{{1, 0, 1}, {0}},
	)
	if err != nil {
		t.Fatal(err)
	}
	if out[0][0] != 0.5 || out[0][1] != 0 || out[0][2] != 2 || out[1][0] != 3 || mean != 0.5 || rewards[0][0] != 1 {
		t.Errorf("rewards %v, mean KL %g", out, mean)
	}
	if _, mean, err := k.Apply(nil, nil, nil, nil); mean != 0 || err != nil {
		t.Errorf("no row: mean %g, %v", mean, err)
	}
	if _, _, err := k.Apply(rewards, rewards, rewards, [][]int32{{1, 1, 1}, {2}}); err == nil {
		t.Error("a mask of 2 was accepted")
	}
	if _, _, err := k.Apply(rewards, rewards, rewards, nil); err == nil {
		t.Error("missing masks were accepted")
	}
}

func TestMeanKL(t *testing.T) {
	nan := math.NaN()
	old := [][]float64{{-1, nan, -2}, {nan}, {-3}}
	ref := [][]float64{{-2, 0, -2}, {0}, {-1}}
	masks := [][]int32{{1, 0, 1}, {0}, {1}}
	tests := []struct {
		estimator loss.Estimator
		want      float64 // the mean over the two live rows: Δ is 1 and 0 in the first, −2 in the last
	}{
		{loss.K1, (0.5 - 2) / 2},
		{loss.K2, (0.25 + 2) / 2},
		{loss.AbsKL, (0.5 + 2) / 2},
		{loss.K3, ((math.Exp(-1))/2 + math.Exp(2) - 3) / 2},
		{loss.K3Plus, ((math.Exp(-1))/2 + math.Exp(2) - 3) / 2},
	}
	for _, test := range tests {
		got, err := loss.MeanKL(test.estimator, old, ref, masks)
		if err != nil || math.Abs(got-test.want) > 1e-12 {
			t.Errorf("%s: %g, %v; want %g", test.estimator, got, err, test.want)
		}
	}
	if got, err := loss.MeanKL(loss.K3, nil, nil, nil); got != 0 || err != nil {
		t.Errorf("no row: %g, %v", got, err)
	}
	if _, err := loss.MeanKL(loss.K3, old, ref[:2], masks); err == nil {
		t.Error("a missing row was accepted")
	}
}
