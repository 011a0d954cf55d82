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
	if got.Rows != first.Rows+then.Rows || got.Tokens != first.Tokens+then.Tokens || got.LogProbDrift != first.LogProbDrift {
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
	if got := mustUpdate(t, alone, nil, cfg); len(got.Updates) != 2 || got.LogProbDrift != 0 || *got.Updates[0].Source != schema.SourceReplay {
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
		{"gamma", func(i *Imitation) { i.Objective.Policy = loss.SelfImitation{Policy: loss.PPOClip{}, Gamma: math.NaN()} }},
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
