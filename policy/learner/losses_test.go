package learner

import (
	"context"
	"math"
	"testing"

	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/rl/loss"
	"github.com/ropewalk/ropewalk/schema"
)

// surrogates is every policy loss, alone and with what composes with it.
func surrogates() map[string]loss.Objective {
	rule := func(scope loss.CovarianceScope, ratio float64) loss.CovarianceRule {
		return loss.CovarianceRule{
			Scope: scope, Ratio: ratio, Lower: -0.5, Upper: 0.5, PerRow: scope == loss.ScopeGroup,
		}
	}
	plain := func(s loss.Surrogate) loss.Objective {
		return loss.Objective{Policy: s, Aggregation: loss.Aggregation{Mode: loss.DefaultMode(s)}}
	}
	ppo := loss.PPOClip{Low: 0.2, High: 0.28, Dual: 3}
	masked, shrunk, composed := plain(ppo), plain(
		loss.SAPO{TauPositive: 1, TauNegative: 1.05},
	), plain(loss.GSPOToken{Low: 3e-2, High: 4e-2})
	masked.SequenceMask = &loss.SequenceMask{Delta: 0.01}
	shrunk.SequenceMask = &loss.SequenceMask{Delta: 0.01, Shrink: true}
	composed.KL, composed.Entropy, composed.TIS = &loss.KL{
		Estimator: loss.K2, Coefficient: 0.1,
	}, &loss.Entropy{Coefficient: 0.05}, &loss.TIS{Cap: 1.5}
	legacy := plain(loss.CISPO{Low: 1, High: 0.2})
	legacy.Aggregation = loss.Aggregation{Mode: loss.NormLegacy, Horizon: 16}
	return map[string]loss.Objective{
		"ppo_clip": plain(ppo), "cispo": plain(loss.CISPO{Low: 1, High: 0.2, Mask: true}), "sapo": plain(
			loss.SAPO{TauPositive: 1, TauNegative: 1.05},
		),
		"gspo": plain(loss.GSPO{Low: 3e-3, High: 4e-3}), "gspo_token": plain(loss.GSPOToken{Low: 3e-2, High: 4e-2}),
		"gppo": plain(loss.GPPO{Low: 0.2, High: 0.2}), "ce_gppo": plain(
			loss.CEGPPO{Low: 0.2, High: 0.2, Beta1: 0.5, Beta2: 1},
		),
		"aepo_clip": plain(loss.AEPOClip{Low: 0.2, High: 0.2}),
		"clip_cov":  plain(loss.ClipCov{Low: 0.2, High: 0.28, Rule: rule("", 0.2)}), "clip_cov by group": plain(
			loss.ClipCov{Low: 0.2, High: 0.28, Rule: rule(loss.ScopeGroup, 0.5)},
		),
		"kl_cov": plain(
			loss.KLCov{Coefficient: 1, Rule: rule("", 0.2)},
		), "sequence mask": masked, "shrinking mask": shrunk, "terms": composed, "norm_legacy": legacy,
	}
}

// offPolicy makes a batch whose ratios are of every region of a clip.
func offPolicy(engine *bigram) []schema.BatchRow {
	batch, rng := otherPolicies(testBatch(engine, 10, 1)), stream(21)
	for i := range batch {
		for t := range batch[i].OldLogProbs {
			batch[i].OldLogProbs[t] = min(0, batch[i].OldLogProbs[t]+float32(0.5*rng.NormFloat64()))
		}
	}
	return batch
}

// oneStep is the first gradient of an update, and what it recorded.
func oneStep(t *testing.T, o loss.Objective, microbatchTokens int) ([]float64, schema.UpdateRow) {
	t.Helper()
	engine := newBigram(vocab)
	cfg := testConfig()
	cfg.Minibatches, cfg.Objective, cfg.MicrobatchTokens, cfg.Tokens = 1, o, microbatchTokens, stream(7)
	got := mustUpdate(t, engine, offPolicy(engine), cfg)
	return engine.applied[0], got.Updates[0]
}

// expected evaluates the loss over the whole mini-batch in one piece.
func expected(t *testing.T, o loss.Objective) ([]float64, float64) {
	t.Helper()
	engine, ctx := newBigram(vocab), context.Background()
	rows, err := prepare(offPolicy(engine), o)
	if err != nil {
		t.Fatal(err)
	}
	req := policy.ForwardRequest{
		Role: policy.RolePolicy, Temperature: 1, Outputs: policy.OutLogProb | policy.OutEntropy, Keep: true,
	}
	filled := make([]loss.Row[float32], len(rows))
	for i, r := range rows {
		req.Sequences, filled[i] = append(req.Sequences, r.tokens), r.loss
	}
	out, err := engine.Forward(ctx, req)
	if err != nil {
		t.Fatal(err)
	}
	for i := range filled {
		filled[i].LogProbs, filled[i].Entropies = out.LogProbs[i], out.Entropies[i]
	}
	plan, err := loss.Prepare(o, filled, stream(7))
	if err != nil {
		t.Fatal(err)
	}
	for i := range plan.Marks {
		filled[i].Marks = plan.Marks[i]
	}
	var e loss.Evaluator[float32]
	result, err := e.Evaluate(o, filled, plan)
	if err != nil {
		t.Fatal(err)
	}
	if err := engine.Backward(
		ctx, policy.RolePolicy, out.Kept,
		policy.Cotangents{LogProbs: result.Cotangents, Entropies: result.EntropyCotangents},
	); err != nil {
		t.Fatal(err)
	}
	return engine.gradient, result.Loss
}

// However a mini-batch is cut, a step descends the loss of the whole.
func TestEveryLoss(t *testing.T) {
	for name, o := range surrogates() {
		want, total := expected(t, o)
		norm := 0.0
		for _, g := range want {
			norm += g * g
		}
		if norm == 0 {
			t.Errorf("%s: nothing is learnt", name)
		}
		for _, tokens := range []int{1, 24, 1000} {
			got, row := oneStep(t, o, tokens)
			if math.Abs(row.Loss-total) > 1e-6*(1+math.Abs(total)) {
				t.Errorf("%s in micro-batches of %d: loss %g, want %g", name, tokens, row.Loss, total)
			}
			for i := range got {
				if math.Abs(got[i]-want[i]) > 1e-7 {
					t.Errorf(
						"%s in micro-batches of %d: gradient of logit %d is %g, want %g", name, tokens, i, got[i],
						want[i],
					)
					break
				}
			}
		}
	}
}

// What must see the whole mini-batch costs one more forward pass over it, and nothing else does.
func TestPreparingCostsOneMorePass(t *testing.T) {
	for name, more := range map[string]bool{"ppo_clip": false, "gspo": false, "clip_cov": true, "kl_cov": true,
		"sequence mask": false, "shrinking mask": true} {
		engine := newBigram(vocab)
		cfg := testConfig()
		cfg.Minibatches, cfg.Objective, cfg.MicrobatchTokens, cfg.Tokens = 1, surrogates()[name], 1000, stream(7)
		mustUpdate(t, engine, offPolicy(engine), cfg)
		if want := map[bool]int{false: 1, true: 2}[more]; engine.forwards != want {
			t.Errorf("%s took %d forward passes, want %d", name, engine.forwards, want)
		}
	}
}

// A rule of the micro-batch's scope selects in each by itself, so that the cut is part of the outcome.
func TestCovarianceByMicrobatch(t *testing.T) {
	o := loss.Objective{
		Policy:      loss.KLCov{Coefficient: 1, Rule: loss.CovarianceRule{Scope: loss.ScopeMicrobatch, Ratio: 0.001}},
		Aggregation: loss.Aggregation{Mode: loss.TokenMean},
	}
	engine := newBigram(vocab)
	cfg := testConfig()
	cfg.Minibatches, cfg.Objective, cfg.MicrobatchTokens, cfg.Tokens = 1, o, 1, stream(7)
	got := mustUpdate(t, engine, offPolicy(engine), cfg)
	if engine.forwards != got.Details[0].Microbatches {
		t.Errorf("%d forward passes over %d micro-batches", engine.forwards, got.Details[0].Microbatches)
	}
	whole, _ := oneStep(t, o, 1000)
	parts, _ := oneStep(t, o, 1)
	same := true
	for i := range whole {
		same = same && math.Abs(whole[i]-parts[i]) < 1e-9
	}
	if same {
		t.Error("one token of each micro-batch is penalised, and the cut changes nothing")
	}
}
