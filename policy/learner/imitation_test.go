package learner

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ropewalk/ropewalk/rl/loss"
	"github.com/ropewalk/ropewalk/schema"
)

// replayed makes n rows with a positive advantage that another policy wrote.
func replayed(n int) []schema.BatchRow {
	other := newBigram(vocab)
	for i := range other.table {
		other.table[i] *= 0.8
	}
	rows := testBatch(other, n, 1)
	for i := range rows {
		rows[i].Count = 1
		for t, m := range rows[i].LossMask {
			rows[i].Advantages[t] = float32(m) * (0.25 + float32(i)/8)
		}
	}
	return rows
}

func imitation(rows []schema.BatchRow) *Imitation {
	return &Imitation{
		Rows: rows, Shuffle: stream(7), Tokens: stream(8),
		Objective: loss.Objective{
			Policy:      loss.SelfImitation{Policy: loss.PPOClip{Low: 0.2, High: 0.28}, Gamma: 0.5},
			Aggregation: loss.Aggregation{Mode: loss.TokenMean},
		},
	}
}

// covariant has the imitation take out tokens by their covariance.
func (i *Imitation) covariant(ratio, low, high float64) {
	i.Objective.Policy = loss.SelfImitation{Gamma: 0.5, Policy: loss.ClipCov{
		Low: 0.2, High: 0.28, Rule: loss.CovarianceRule{Ratio: ratio, Lower: low, Upper: high},
	}}
}

// The steps of the imitation are those of an update of its own, after the batch's.
func TestImitationFollowsTheBatch(t *testing.T) {
	both, apart := newBigram(vocab), newBigram(vocab)
	batch, again := testBatch(both, 8, 1), replayed(6)
	cfg := testConfig()
	cfg.Imitation = imitation(again)
	got := mustUpdate(t, both, batch, cfg)

	first := mustUpdate(t, apart, batch, testConfig())
	for i := range again {
		for k := range again[i].Advantages {
			again[i].Advantages[k] *= 0.5 // γ
		}
	}
	second := testConfig()
	second.Objective.Policy, second.Shuffle = loss.PPOClip{Low: 0.2, High: 0.28}, stream(7)
	then := mustUpdate(t, apart, again, second)

	if diff := cmp.Diff(apart.table, both.table); diff != "" {
		t.Errorf("the policy (-apart +both):\n%s", diff)
	}
	want := slices.Concat(first.Updates, then.Updates)
	for _, u := range want[len(first.Updates):] { // the record has what the replay batch holds, without γ
		for _, a := range []*float64{u.AdvantageMean, u.AdvantageStd, u.AdvantageMin, u.AdvantageMax} {
			*a *= 2
		}
	}
	for i := range want {
		want[i].Minibatch = int32(i)
		want[i].Source = new([]string{schema.SourcePolicy, schema.SourceReplay}[i/2])
	}
	if diff := cmp.Diff(want, got.Updates); diff != "" {
		t.Errorf("the record (-apart +both):\n%s", diff)
	}
	if got.Rows != first.Rows+then.Rows || got.Tokens != first.Tokens+then.Tokens ||
		got.LogProbDrift != first.LogProbDrift {
		t.Errorf("got %d rows, %d tokens, drift %g", got.Rows, got.Tokens, got.LogProbDrift)
	}
	if err := both.idle(); err != nil {
		t.Error(err)
	}
}

func TestImitationOfNothingIsTheBatchAlone(t *testing.T) {
	with, without := newBigram(vocab), newBigram(vocab)
	cfg := testConfig()
	cfg.Imitation = imitation(nil)
	got := mustUpdate(t, with, testBatch(with, 8, 1), cfg)
	mustUpdate(t, without, testBatch(without, 8, 1), testConfig())
	if diff := cmp.Diff(without.table, with.table); diff != "" {
		t.Error(diff)
	}
	for _, u := range got.Updates {
		if u.Source == nil || *u.Source != schema.SourcePolicy {
			t.Errorf("source %v", u.Source)
		}
	}
	alone := newBigram(vocab)
	cfg.Imitation = imitation(replayed(6))
	if got := mustUpdate(t, alone, nil, cfg); len(got.Updates) != 2 || got.LogProbDrift != 0 ||
		*got.Updates[0].Source != schema.SourceReplay {
		t.Errorf("without a batch: %+v", got)
	}
}

// What is taken out has no gradient and stays in the denominator, however the mini-batch is cut.
func TestCovarianceClipIsOfTheMinibatch(t *testing.T) {
	var tables [][]float64
	for _, tokens := range []int{1, 24, 10_000} {
		engine := newBigram(vocab)
		cfg := testConfig()
		cfg.MicrobatchTokens, cfg.Imitation = tokens, imitation(replayed(12))
		cfg.Imitation.covariant(0.3, -0.2, 0.2)
		mustUpdate(t, engine, nil, cfg)
		tables = append(tables, engine.table)
	}
	for _, table := range tables[1:] {
		for k := range table {
			if math.Abs(table[k]-tables[0][k]) > 1e-6 {
				t.Fatalf("entry %d: %g and %g", k, table[k], tables[0][k])
			}
		}
	}
	all, none := newBigram(vocab), newBigram(vocab)
	cfg := testConfig()
	cfg.Imitation = imitation(replayed(12))
	cfg.Imitation.covariant(1, math.Inf(-1), math.Inf(1))
	got := mustUpdate(t, all, nil, cfg)
	for _, u := range got.Updates {
		if u.Loss != 0 && u.ClipFraction == 0 || u.Tokens == 0 {
			t.Errorf("all that the clip leaves alone is taken out: %+v", u)
		}
	}
	for k := range none.table {
		if all.table[k] != none.table[k] {
			t.Fatal("the policy moved")
		}
	}
}

func TestImitationRefuses(t *testing.T) {
	tests := []struct {
		text   string
		change func(*Imitation)
	}{
		{
			"gamma",
			func(i *Imitation) { i.Objective.Policy = loss.SelfImitation{Policy: loss.PPOClip{}, Gamma: math.NaN()} },
		},
		{"a policy loss is needed", func(i *Imitation) { i.Objective.Policy = nil }},
		{"cov_ratio", func(i *Imitation) { i.covariant(2, 0, 1) }},
		{"cov_lower", func(i *Imitation) { i.covariant(0.1, 2, 2) }},
		{"stream for the shuffle", func(i *Imitation) { i.Shuffle = nil }},
		{"stream for the tokens", func(i *Imitation) { i.covariant(0.1, 0, 1); i.Tokens = nil }},
		{"old log-probabilities are null", func(i *Imitation) { i.Rows[0].OldLogProbs = nil }},
	}
	for _, test := range tests {
		cfg := testConfig()
		cfg.Imitation = imitation(replayed(2))
		test.change(cfg.Imitation)
		engine := newBigram(vocab)
		_, err := Update(context.Background(), engine, testBatch(engine, 4, 1), cfg, nil)
		if err == nil || !strings.Contains(err.Error(), test.text) {
			t.Errorf("error %v does not name %s", err, test.text)
		}
		if engine.steps > 0 {
			t.Errorf("%s: the batch's steps were taken", test.text)
		}
	}
}

// A joint step's gradient is the sum of the gradients of its two mini-batches, each under its own
// denominators; the record has a row for each.
func TestJointImitation(t *testing.T) {
	both := newBigram(vocab)
	batch, again := testBatch(both, 8, 1), replayed(6)
	gradient := func(batch []schema.BatchRow, i *Imitation) []float64 {
		engine := newBigram(vocab)
		cfg := testConfig()
		cfg.Minibatches, cfg.Imitation = 1, i
		mustUpdate(t, engine, batch, cfg)
		return engine.applied[0]
	}
	joint := imitation(again)
	joint.Joint = true
	sum, first, second := gradient(batch, joint), gradient(batch, nil), gradient(nil, imitation(again))
	for k := range sum {
		if math.Abs(sum[k]-first[k]-second[k]) > 1e-12 {
			t.Errorf("entry %d: %g is not %g + %g", k, sum[k], first[k], second[k])
		}
	}

	cfg := testConfig()
	cfg.Imitation = imitation(again)
	cfg.Imitation.Joint, cfg.Epochs = true, 2
	got := mustUpdate(t, both, batch, cfg)
	if both.steps != 4 || len(got.Updates) != 8 || got.Rows != 14 {
		t.Fatalf(
			"%d optimiser steps, %d rows of the record, %d live rows; want 4, 8, 14", both.steps, len(got.Updates),
			got.Rows,
		)
	}
	sources, rows := []string{schema.SourcePolicy, schema.SourceReplay}, []int32{4, 3}
	for i, u := range got.Updates {
		if u.OptimizerStep != int64(i/2+1) || u.Minibatch != int32(i) || *u.Source != sources[i%2] ||
			u.Rows != rows[i%2] || *u.GradNorm != *got.Updates[i-i%2].GradNorm {
			t.Errorf("row %d: %+v", i, u)
		}
	}
	if want := mustUpdate(t, newBigram(vocab), batch, testConfig()); got.LogProbDrift != want.LogProbDrift {
		t.Errorf("drift %g, want the batch's %g", got.LogProbDrift, want.LogProbDrift)
	}
}

// Fewer replayed rows than mini-batches leave some optimiser steps to the batch; without a live row in the
// batch the steps are those that the replayed rows are cut into.
func TestJointImitationOfUnlikeSizes(t *testing.T) {
	tests := []struct {
		name          string
		batch, again  int
		minibatchRows int
		steps         int64
		sources       string // p: a row on the batch, r: one on the replayed rows
	}{
		{name: "one replayed row", batch: 8, again: 1, steps: 2, sources: "ppr"},
		{name: "nothing replayed", batch: 8, again: 0, steps: 2, sources: "pp"},
		{name: "no batch", batch: 0, again: 6, steps: 2, sources: "rr"},
		{name: "neither", batch: 0, again: 0, steps: 0, sources: ""},
		{name: "cut by the batch's rows", batch: 8, again: 6, minibatchRows: 3, steps: 3, sources: "prprpr"},
		{name: "no batch, cut by rows", batch: 0, again: 6, minibatchRows: 2, steps: 3, sources: "rrr"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			engine := newBigram(vocab)
			cfg := testConfig()
			cfg.MinibatchRows, cfg.Imitation = test.minibatchRows, imitation(replayed(test.again))
			if test.minibatchRows > 0 {
				cfg.Minibatches = 1
			}
			cfg.Imitation.Joint = true
			got := mustUpdate(t, engine, testBatch(engine, test.batch, 1), cfg)
			sources := ""
			for _, u := range got.Updates {
				sources += (*u.Source)[:1]
			}
			if engine.steps != test.steps || sources != test.sources {
				t.Errorf("%d steps with rows %q, want %d with %q", engine.steps, sources, test.steps, test.sources)
			}
		})
	}
}

// A joint step that fails on the replayed rows leaves no gradient of the batch's behind.
func TestJointImitationDiscards(t *testing.T) {
	engine := newBigram(vocab)
	cfg := testConfig()
	cfg.Minibatches, cfg.MicrobatchTokens, cfg.Imitation = 1, 10_000, imitation(replayed(6))
	cfg.Imitation.Joint = true
	engine.failAt = 2
	_, err := Update(context.Background(), engine, testBatch(engine, 8, 1), cfg, nil)
	if err == nil || !strings.Contains(err.Error(), "minibatch 1 of 1") {
		t.Errorf("error %v", err)
	}
	if err := engine.idle(); err != nil || engine.discards != 1 || engine.steps != 0 {
		t.Errorf("%v; %d discards, %d steps", err, engine.discards, engine.steps)
	}
}
