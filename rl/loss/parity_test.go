package loss_test

import (
	"maps"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/ropewalk/ropewalk/internal/bench"
	"github.com/ropewalk/ropewalk/internal/testing/losstest"
	"github.com/ropewalk/ropewalk/internal/testing/pythontest"
	"github.com/ropewalk/ropewalk/rl/loss"
)

// parityBatches is how many random batches each method is compared on.
const parityBatches = 200

// parityTolerance is the greatest difference allowed, relative to 1 + the value's size.
const parityTolerance = 1e-9

// TestParity compares every loss's value and gradients with PyTorch's autograd over formulas that
// testdata/parity.py holds, in float64. It is skipped where Python has no torch, or fails if
// ROPEWALK_REQUIRE_TORCH is set.
func TestParity(t *testing.T) {
	peer := startTorch(t)
	for _, m := range parityMethods() {
		t.Run(m.name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(11, 13))
			worstValue, worstGradient := 0.0, 0.0
			for range parityBatches {
				value, gradient := m.compare(t, rng, peer)
				worstValue, worstGradient = max(worstValue, value), max(worstGradient, gradient)
			}
			t.Logf(
				"parity: %-22s %d batches, max error of the value %.1e, of the gradients %.1e", m.name, parityBatches,
				worstValue, worstGradient,
			)
			if !(worstValue <= parityTolerance && worstGradient <= parityTolerance) {
				t.Errorf("beyond the tolerance of %g", parityTolerance)
			}
		})
	}
}

// torch is one Python process that answers jobs line by line.
type torch struct{ *bench.Peer }

func startTorch(t *testing.T) *torch {
	t.Helper()
	return &torch{pythontest.Start(t, pythontest.Need(t, "TORCH", "torch"), "testdata/parity.py")}
}

// torchAnswer is the loss and its gradients.
type torchAnswer struct {
	Loss          float64
	Logp, Entropy [][]float64
}

func (p *torch) ask(t *testing.T, batch, params map[string]any) (out torchAnswer) {
	t.Helper()
	if err := p.Ask(t.Context(), map[string]any{"batch": batch, "params": params}, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// parityMethod is one objective, with the parameters by which the Python formulas know it.
type parityMethod struct {
	name      string
	objective loss.Objective
	value     *loss.ValueClip
	params    map[string]any
}

func parityMethods() []parityMethod {
	var out []parityMethod
	for _, c := range losstest.Cases() {
		out = append(out, parityMethod{name: c.Name, objective: c.Objective, value: c.Value, params: c.Params()})
	}
	named := func(name string, o loss.Objective, params map[string]any) {
		out = append(out, parityMethod{name: name, objective: o, params: params})
	}
	with := func(base map[string]any, more map[string]any) map[string]any {
		all := maps.Clone(base)
		maps.Copy(all, more)
		return all
	}
	// Settings that reach what the examples reach rarely: bounds that bind in short rows.
	rule := loss.CovarianceRule{Ratio: 0.2, Lower: -0.1, Upper: 40}
	wide := map[string]any{"clip_low": 0.1, "clip_high": 0.15}
	named(
		"gspo wide", loss.Objective{Policy: loss.GSPO{Low: 0.1, High: 0.15}},
		with(wide, map[string]any{"policy": "gspo"}),
	)
	named(
		"gspo_token wide", loss.Objective{Policy: loss.GSPOToken{Low: 0.1, High: 0.15}},
		with(wide, map[string]any{"policy": "gspo_token"}),
	)
	named("ce_gppo wide", loss.Objective{Policy: loss.CEGPPO{Low: 0.2, High: 0.28, Beta1: 0.75, Beta2: 1.1}},
		map[string]any{"policy": "ce_gppo", "clip_low": 0.2, "clip_high": 0.28, "beta1": 0.75, "beta2": 1.1})
	named("clip_cov wide", loss.Objective{Policy: loss.ClipCov{Low: 0.2, High: 0.28, Rule: rule}},
		map[string]any{"policy": "clip_cov", "clip_low": 0.2, "clip_high": 0.28})
	named("kl_cov wide", loss.Objective{Policy: loss.KLCov{Coefficient: 0.7, Rule: rule}},
		map[string]any{"policy": "kl_cov", "cov_coefficient": 0.7})
	clip := loss.PPOClip{Low: 0.2, High: 0.28, Dual: 3}
	ppo := map[string]any{"policy": "ppo_clip", "clip_low": 0.2, "clip_high": 0.28, "dual_clip": 3.0}
	for _, e := range []loss.Estimator{"k1+", "abs+", "k2+", loss.K3Plus} {
		k := loss.KL{Estimator: e, Coefficient: 0.3}
		named(k.Name(), loss.Objective{KL: &k}, map[string]any{"estimator": string(e), "c_kl": 0.3})
	}
	named(
		"cispo masked", loss.Objective{Policy: loss.CISPO{Low: 0.3, High: 0.2, Mask: true}},
		map[string]any{"policy": "cispo", "clip_low": 0.3, "clip_high": 0.2, "mask": true},
	)
	named(
		"aepo_clip dual", loss.Objective{Policy: loss.AEPOClip{Low: 0.2, High: 0.2, Dual: 3}},
		map[string]any{"policy": "aepo_clip", "clip_low": 0.2, "clip_high": 0.2, "dual_clip": 3.0},
	)
	named("tis", loss.Objective{Policy: clip, TIS: &loss.TIS{Cap: 2}}, with(ppo, map[string]any{"cap": 2.0}))
	named(
		"sequence mask", loss.Objective{Policy: clip, SequenceMask: &loss.SequenceMask{Delta: 0.1}},
		with(ppo, map[string]any{"delta": 0.1}),
	)
	named(
		"sequence mask shrinking",
		loss.Objective{Policy: clip, SequenceMask: &loss.SequenceMask{Delta: 0.1, Shrink: true}},
		with(ppo, map[string]any{"delta": 0.1, "shrink": true}),
	)
	named("everything", loss.Objective{
		Policy: loss.SAPO{
			TauPositive: 2, TauNegative: 2.1,
		}, TIS: &loss.TIS{Cap: 2}, SequenceMask: &loss.SequenceMask{Delta: 0.1},
		KL: &loss.KL{Estimator: loss.K3, Coefficient: 0.05}, Entropy: &loss.Entropy{Coefficient: 0.01},
	}, map[string]any{"policy": "sapo", "tau_positive": 2.0, "tau_negative": 2.1, "cap": 2.0, "delta": 0.1,
		"estimator": "k3", "c_kl": 0.05, "c_h": 0.01})
	return out
}

// compare evaluates one random batch on both sides.
func (m parityMethod) compare(t *testing.T, rng *rand.Rand, peer *torch) (value, gradient float64) {
	t.Helper()
	mode := loss.Modes()[rng.IntN(len(loss.Modes()))]
	spread := losstest.Spread{Drift: []float64{0.1, 0.5, 2}[rng.IntN(3)], Tokens: rng.IntN(2) == 0}
	b := losstest.New[float64](rng, 1+rng.IntN(5), 1+rng.IntN(9), spread)
	for i := range b.Rows {
		b.Rows[i].Count = int32(1 + rng.IntN(3))
		b.Values[i].Count = b.Rows[i].Count
		if rng.IntN(8) == 0 {
			clear(b.Rows[i].Mask) // shared with the critic's row
		}
	}
	c := losstest.Case{Name: m.name, Objective: m.objective, Value: m.value}
	c.Objective.Aggregation = loss.Aggregation{Mode: mode, Horizon: 9}
	rows, plan, err := losstest.Planned(c, b)
	if err != nil {
		t.Fatal(err)
	}
	var e loss.Evaluator[float64]
	got, err := losstest.Evaluate(c, &e, rows, b.Values, plan)
	if err != nil {
		t.Fatal(err)
	}
	params := map[string]any{"mode": mode, "horizon": 9}
	for k, v := range m.params {
		params[k] = v
	}
	want := peer.ask(t, torchBatch(m, rows, b), params)
	value = distance(got.Loss, want.Loss)
	for i := range rows {
		for k := range rows[i].Mask {
			gradient = max(
				gradient, distance(at(got.Cotangents, i, k), want.Logp[i][k]),
				distance(at(got.EntropyCotangents, i, k), want.Entropy[i][k]),
			)
		}
	}
	return value, gradient
}

func torchBatch(m parityMethod, rows []loss.Row[float64], b losstest.Batch[float64]) map[string]any {
	out := map[string]any{}
	add := func(name string, of func(i int) any) {
		list := make([]any, len(rows))
		for i := range rows {
			list[i] = of(i)
		}
		out[name] = list
	}
	add("mask", func(i int) any { return rows[i].Mask })
	add("count", func(i int) any { return rows[i].Count })
	add("logp", func(i int) any { return rows[i].LogProbs })
	add("old", func(i int) any { return rows[i].Old })
	add("adv", func(i int) any { return rows[i].Advantages })
	add("rollout", func(i int) any { return rows[i].Rollout })
	add("ref", func(i int) any { return rows[i].Ref })
	add("entropy", func(i int) any { return b.Rows[i].Entropies })
	if rows[0].Marks != nil {
		add("marks", func(i int) any { return rows[i].Marks })
	}
	if m.value != nil {
		add("logp", func(i int) any { return b.Values[i].Values })
		add("old", func(i int) any { return b.Values[i].Old })
		add("adv", func(i int) any { return b.Values[i].Returns })
	}
	return out
}

func at(rows [][]float64, i, k int) float64 {
	if rows == nil {
		return 0
	}
	return rows[i][k]
}

// distance is relative to 1 + the size; NaN counts as far.
func distance(got, want float64) float64 {
	d := math.Abs(got-want) / (1 + math.Abs(want))
	if math.IsNaN(d) {
		return math.Inf(1)
	}
	return d
}
