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
		batch[i].RolloutLogProbs, batch[i].ReferenceLogProbs = shifted(batch[i].OldLogProbs), shifted(batch[i].OldLogProbs)
	}
	return batch
}

// wholeLoss is the objective written down plainly, with token-mean aggregation and no ratio clipped.
func wholeLoss(engine *bigram, batch []schema.BatchRow, t Terms, temperature float64) (total, kl float64) {
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
			weight := math.Min(math.Exp(float64(r.OldLogProbs[i])-float64(r.RolloutLogProbs[i])), t.TISCap)
			x := float64(r.ReferenceLogProbs[i]) - logp
			k3, n := math.Exp(x)-x-1, float64(r.Count)
			total += (-float64(r.Advantages[i])*weight*math.Exp(logp-float64(r.OldLogProbs[i])) + n*t.KLCoefficient*k3 - n*t.Entropy*entropy) / tokens
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
	cfg.Terms = Terms{KL: loss.K3, KLCoefficient: 0.3, Entropy: 0.2, TISCap: 1.2}
	want := make([]float64, len(engine.table))
	const h = 1e-5
	for i := range want {
		at := func(d float64) float64 {
			moved := newBigram(vocab)
			moved.table[i] += d
			l, _ := wholeLoss(moved, batch, cfg.Terms, cfg.Temperature)
			return l
		}
		want[i] = (at(h) - at(-h)) / (2 * h)
	}
	total, kl := wholeLoss(engine, batch, cfg.Terms, cfg.Temperature)
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
		terms Terms
		want  error
	}{
		"no reference": {Terms{KL: loss.K3}, ErrNoReference},
		"no rollout":   {Terms{TISCap: 2}, ErrNoRollout},
		"estimator":    {Terms{KL: "k9"}, nil},
		"coefficient":  {Terms{KL: loss.K2, KLCoefficient: -1}, nil},
		"entropy":      {Terms{Entropy: math.NaN()}, nil},
		"cap":          {Terms{TISCap: math.Inf(1)}, nil},
	} {
		engine := newBigram(vocab)
		cfg := testConfig()
		cfg.Terms = c.terms
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
