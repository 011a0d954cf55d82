package learner

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/ropewalk/ropewalk/rl/loss"
	"github.com/ropewalk/ropewalk/schema"
)

// otherPolicies gives a batch's rows a rollout and a reference that differ from the policy.
func otherPolicies(batch []schema.BatchRow) []schema.BatchRow {
	rng := stream(11)
	shifted := func(from []float32) []float32 {
		out := slices.Clone(from)
		for i := range out {
			out[i] = min(0, out[i]+float32(0.4*rng.NormFloat64()))
		}
		return out
	}
	for i := range batch {
		batch[i].RolloutLogProbs = shifted(batch[i].OldLogProbs)
		batch[i].ReferenceLogProbs = shifted(batch[i].OldLogProbs)
	}
	return batch
}

// wholeLoss is the objective written down plainly, with token-mean aggregation and no ratio clipped.
func wholeLoss(engine *bigram, batch []schema.BatchRow, o loss.Objective, temperature float64) (total, kl float64) {
	tokens := 0.0
	for _, r := range batch {
		for _, m := range r.LossMask {
			tokens += float64(m) * float64(r.Count)
		}
	}
	for _, r := range batch {
		for i, m := range r.LossMask {
			if m == 0 {
				continue
			}
			next := engine.logSoftmax(r.TokenIDs[i-1], temperature)
			logp, entropy := next[r.TokenIDs[i]], 0.0
			for _, l := range next {
				entropy -= math.Exp(l) * l
			}
			weight := math.Min(math.Exp(float64(r.OldLogProbs[i])-float64(r.RolloutLogProbs[i])), o.TIS.Cap)
			x := float64(r.ReferenceLogProbs[i]) - logp
			k3, n := math.Exp(x)-x-1, float64(r.Count)
			total += (-float64(r.Advantages[i])*weight*math.Exp(
				logp-float64(r.OldLogProbs[i]),
			) + n*o.KL.Coefficient*k3 - n*o.Entropy.Coefficient*entropy) / tokens
			kl += n * k3 / tokens
		}
	}
	return total, kl
}

func TestTermsAndTheirGradient(t *testing.T) {
	engine := newBigram(vocab)
	batch := otherPolicies(testBatch(engine, 8, 0.7))
	cfg := testConfig()
	cfg.Temperature, cfg.Minibatches = 0.7, 1
	cfg.Objective.KL, cfg.Objective.Entropy, cfg.Objective.TIS = &loss.KL{
		Estimator: loss.K3, Coefficient: 0.3,
	}, &loss.Entropy{Coefficient: 0.2}, &loss.TIS{Cap: 1.2}
	want := make([]float64, len(engine.table))
	const h = 1e-5
	for i := range want {
		at := func(d float64) float64 {
			moved := newBigram(vocab)
			moved.table[i] += d
			l, _ := wholeLoss(moved, batch, cfg.Objective, cfg.Temperature)
			return l
		}
		want[i] = (at(h) - at(-h)) / (2 * h)
	}
	total, kl := wholeLoss(engine, batch, cfg.Objective, cfg.Temperature)
	got := mustUpdate(t, engine, batch, cfg).Updates[0]
	if math.Abs(got.Loss-total) > 1e-6 || got.ReferenceKL == nil || math.Abs(*got.ReferenceKL-kl) > 1e-6 {
		t.Errorf("loss %g and divergence %v, want %g and %g", got.Loss, got.ReferenceKL, total, kl)
	}
	for i, g := range engine.applied[0] {
		if math.Abs(g-want[i]) > 1e-6 {
			t.Errorf("gradient of logit %d is %g, want %g", i, g, want[i])
		}
	}
}

// Without terms, what other policies said changes nothing, and no divergence is recorded.
func TestNoTermReadsNothing(t *testing.T) {
	a, b := newBigram(vocab), newBigram(vocab)
	plain := mustUpdate(t, a, testBatch(a, 8, 1), testConfig())
	mustUpdate(t, b, otherPolicies(testBatch(b, 8, 1)), testConfig())
	if !slices.Equal(a.table, b.table) || plain.Updates[0].ReferenceKL != nil {
		t.Errorf("the policies differ, or a divergence is recorded: %v", plain.Updates[0].ReferenceKL)
	}
}

func TestTermsRefuse(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*loss.Objective)
		want   error
	}{
		"no reference": {
			func(o *loss.Objective) { o.KL = &loss.KL{Estimator: loss.K3, Coefficient: 1} }, errNoReference,
		},
		"no rollout":  {func(o *loss.Objective) { o.TIS = &loss.TIS{Cap: 2} }, errNoRollout},
		"estimator":   {func(o *loss.Objective) { o.KL = &loss.KL{Estimator: "k9"} }, nil},
		"coefficient": {func(o *loss.Objective) { o.KL = &loss.KL{Estimator: loss.K2, Coefficient: -1} }, nil},
		"entropy":     {func(o *loss.Objective) { o.Entropy = &loss.Entropy{Coefficient: math.NaN()} }, nil},
		"cap":         {func(o *loss.Objective) { o.TIS = &loss.TIS{Cap: math.Inf(1)} }, nil},
	} {
		engine := newBigram(vocab)
		cfg := testConfig()
		c.change(&cfg.Objective)
		_, err := Update(context.Background(), engine, testBatch(engine, 4, 1), cfg, nil)
		if err == nil || (c.want != nil && !errors.Is(err, c.want)) || engine.forwards > 0 {
			t.Errorf("%s: %v after %d forward passes", name, err, engine.forwards)
		}
	}
}

func TestMinibatchesByRows(t *testing.T) {
	engine := newBigram(vocab)
	cfg := testConfig()
	cfg.Minibatches, cfg.MinibatchRows, cfg.Epochs = 1, 5, 2
	got := mustUpdate(t, engine, testBatch(engine, 12, 1), cfg)
	var rows []int32
	for _, u := range got.Updates {
		rows = append(rows, u.Rows)
	}
	if !slices.Equal(rows, []int32{4, 4, 4, 4, 4, 4}) {
		t.Errorf("mini-batches of %v rows, want three of four in each epoch", rows)
	}
}
