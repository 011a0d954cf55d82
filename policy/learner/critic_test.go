package learner

import (
	"context"
	"errors"
	"math"
	"testing"

	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/rl/loss"
	"github.com/ropewalk/ropewalk/rl/optimizer"
	"github.com/ropewalk/ropewalk/schema"
)

// valuer is a trainer whose critic has one value for each token seen before: V_t = table[s_{t−1}].
type valuer struct {
	policy.Trainer
	table, gradient []float64
	kept            [][]int32
	steps           int64
	rows            []int // of each forward pass
	discarded       bool
	fail            bool
	room            int // tokens of a forward pass that the memory has room for; 0 = any
}

func (v *valuer) Forward(_ context.Context, req policy.ForwardRequest) (policy.TokenOutputs, error) {
	if req.Role != policy.RoleCritic || req.Outputs != policy.OutValue || !req.Keep {
		return policy.TokenOutputs{}, policy.ErrBadRequest
	}
	if v.room > 0 && tokensOf(indexes(req.Sequences), func(i int) []int32 { return req.Sequences[i] }) > v.room {
		return policy.TokenOutputs{}, policy.ErrOutOfMemory
	}
	v.rows = append(v.rows, len(req.Sequences))
	out := policy.TokenOutputs{}
	for _, s := range req.Sequences {
		row := make([]float32, len(s))
		for t := 1; t < len(s); t++ {
			row[t] = float32(v.table[s[t-1]])
		}
		out.Values = append(out.Values, row)
	}
	v.kept = req.Sequences
	return out, nil
}

func (v *valuer) Backward(_ context.Context, role policy.Role, _ policy.Kept, c policy.Cotangents) error {
	for i, s := range v.kept {
		for t := 1; t < len(s); t++ {
			v.gradient[s[t-1]] += float64(c.Values[i][t])
		}
	}
	if v.fail {
		return policy.ErrLost
	}
	return nil
}

func (v *valuer) Step(_ context.Context, role policy.Role, o policy.StepOptions) (policy.StepStats, error) {
	norm := 0.0
	for i, g := range v.gradient {
		norm += g * g
		v.table[i] -= o.LR * g
		v.gradient[i] = 0
	}
	v.steps++
	return policy.StepStats{GradNorm: math.Sqrt(norm), Step: v.steps}, nil
}

func (v *valuer) Discard(_ context.Context, role policy.Role) error {
	v.discarded = role == policy.RoleCritic
	return nil
}

func newValuer() *valuer {
	return &valuer{table: make([]float64, vocab), gradient: make([]float64, vocab)}
}

// valued gives the batch values of 0 and returns that the token before decides.
func valued(batch []schema.BatchRow) []schema.BatchRow {
	for i := range batch {
		b := &batch[i]
		b.Values, b.Returns = make([]float32, len(b.TokenIDs)), make([]float32, len(b.TokenIDs))
		for t, m := range b.LossMask {
			if m == 1 {
				b.Returns[t] = float32(b.TokenIDs[t-1]) / vocab
			}
		}
	}
	return batch
}

func criticOf(coefficient, clip float64) Critic {
	return Critic{Loss: loss.ValueClip{Clip: clip}, Coefficient: coefficient, Optimizer: policy.StepOptions{LR: 1,
		Rule: optimizer.AdamW{}}}
}

func TestTheCriticLearnsReturns(t *testing.T) {
	engine := newValuer()
	cfg := testConfig()
	cfg.Minibatches, cfg.Epochs = 2, 40
	batch := valued(testBatch(newBigram(vocab), 12, 1))
	heard := 0
	steps, err := UpdateCritic(
		context.Background(), engine, batch, cfg, criticOf(1, 0), func(done, _ int) { heard = done },
	)
	if err != nil {
		t.Fatal(err)
	}
	if len(steps) != 80 || engine.steps != 80 || heard != len(engine.rows) {
		t.Fatalf("%d steps, %d of the engine, progress %d of %d", len(steps), engine.steps, heard, len(engine.rows))
	}
	first, last := steps[0], steps[79]
	if first.ExplainedVariance == nil || math.Abs(*first.ExplainedVariance) > 1e-6 {
		t.Errorf("values of 0 explain %v", first.ExplainedVariance)
	}
	if !(last.Loss < first.Loss/100) || !(*last.ExplainedVariance > 0.95) || !(first.GradNorm > 0) {
		t.Errorf("first %+v, last %+v, which explains %g", first, last, *last.ExplainedVariance)
	}
}

// The critic's mini-batches are the policy's, and the coefficient multiplies its gradient alone.
func TestTheCriticSharesTheMinibatches(t *testing.T) {
	batch := valued(testBatch(newBigram(vocab), 12, 1))
	run := func(coefficient float64) (*valuer, []CriticStep) {
		engine := newValuer()
		cfg := testConfig()
		cfg.Minibatches, cfg.MicrobatchTokens = 3, 1000
		steps, err := UpdateCritic(context.Background(), engine, batch, cfg, criticOf(coefficient, 0.5), nil)
		if err != nil {
			t.Fatal(err)
		}
		return engine, steps
	}
	engine, plain := run(1)
	_, double := run(2)
	if math.Abs(double[0].GradNorm-2*plain[0].GradNorm) > 1e-6 || double[0].Loss != plain[0].Loss {
		t.Errorf("coefficient 1: %+v, 2: %+v", plain[0], double[0])
	}
	bigrams := newBigram(vocab)
	cfg := testConfig()
	cfg.Minibatches, cfg.MicrobatchTokens = 3, 1000
	for i, u := range mustUpdate(t, bigrams, batch, cfg).Updates {
		if int(u.Rows) != engine.rows[i] {
			t.Errorf("mini-batch %d has %d rows of the policy's and %d of the critic's", i, u.Rows, engine.rows[i])
		}
	}
}

func TestExplainedVarianceOfEqualReturns(t *testing.T) {
	batch := valued(testBatch(newBigram(vocab), 4, 1))
	for i := range batch {
		for k := range batch[i].Returns {
			batch[i].Returns[k] = 0.3
		}
	}
	steps, err := UpdateCritic(context.Background(), newValuer(), batch, testConfig(), criticOf(1, 0.5), nil)
	if err != nil || steps[0].ExplainedVariance != nil {
		t.Errorf("%v, %v", steps, err)
	}
}

func TestUpdateCriticRefuses(t *testing.T) {
	batch := valued(testBatch(newBigram(vocab), 4, 1))
	for name, c := range map[string]struct {
		change func([]schema.BatchRow, *valuer, *Critic)
		want   error
	}{
		"no returns":      {func(b []schema.BatchRow, _ *valuer, _ *Critic) { b[1].Returns = nil }, errNoReturns},
		"no values":       {func(b []schema.BatchRow, _ *valuer, _ *Critic) { b[1].Values = nil }, errNoReturns},
		"no coefficient":  {func(_ []schema.BatchRow, _ *valuer, c *Critic) { c.Coefficient = 0 }, nil},
		"a negative clip": {func(_ []schema.BatchRow, _ *valuer, c *Critic) { c.Loss.Clip = -1 }, nil},
		"a lost engine":   {func(_ []schema.BatchRow, v *valuer, _ *Critic) { v.fail = true }, policy.ErrLost},
	} {
		rows, engine, critic := append([]schema.BatchRow(nil), batch...), newValuer(), criticOf(1, 0.5)
		c.change(rows, engine, &critic)
		_, err := UpdateCritic(context.Background(), engine, rows, testConfig(), critic, nil)
		if err == nil || c.want != nil && !errors.Is(err, c.want) || engine.fail != engine.discarded {
			t.Errorf("%s: %v, discarded %v", name, err, engine.discarded)
		}
	}
}

func indexes(rows [][]int32) []int {
	out := make([]int, len(rows))
	for i := range out {
		out[i] = i
	}
	return out
}
