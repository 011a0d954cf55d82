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
	return &Imitation{Rows: rows, Clip: loss.PPOClip{Low: 0.2, High: 0.28}, Gamma: 0.5, Draws: stream(7)}
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
	second.Surrogate, second.Shuffle = loss.PPOClip{Low: 0.2, High: 0.28}, stream(7)
	then := mustUpdate(t, apart, again, second)

	if diff := cmp.Diff(apart.table, both.table); diff != "" {
		t.Errorf("the policy (-apart +both):\n%s", diff)
	}
	want := slices.Concat(first.Updates, then.Updates)
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

// Two rows of two tokens: A = 1 and 3, logp = −1, −2 and −4, −5, so that means are 2 and −3 and the
// covariances −2, −1, −1, −2. The second row's first token is clipped.
func TestCovarianceClipDrawsBetweenItsBounds(t *testing.T) {
	rows := []loss.Row{
		{LogProbs: []float64{9, -1, -2}, Old: []float64{0, -1, -2}, Advantages: []float64{9, 1, 1}, Mask: []int32{0, 1, 1}, Count: 1},
		{LogProbs: []float64{-4, -5}, Old: []float64{-5, -5}, Advantages: []float64{3, 3}, Mask: []int32{1, 1}, Count: 1},
	}
	tests := []struct {
		name string
		clip CovarianceClip
		want []place // all of the candidates where the budget suffices
		n    int
	}{
		{"all", CovarianceClip{Ratio: 1, Low: -3, High: 0}, []place{{0, 1}, {0, 2}, {1, 1}}, 3},
		{"strictly above", CovarianceClip{Ratio: 1, Low: -2, High: 0}, []place{{0, 2}}, 1},
		{"strictly below", CovarianceClip{Ratio: 1, Low: -3, High: -1}, []place{{0, 1}, {1, 1}}, 2},
		{"a budget of one at least", CovarianceClip{Ratio: 0.001, Low: -3, High: 0}, nil, 1},
		{"a share, rounded down", CovarianceClip{Ratio: 0.7, Low: -3, High: 0}, nil, 2},
		{"none between", CovarianceClip{Ratio: 1, Low: 0, High: 60}, []place{}, 0},
	}
	for _, test := range tests {
		i := imitation(nil)
		i.Covariance = test.clip
		got := i.draw(rows)
		if len(got) != test.n || test.want != nil && !slices.Equal(got, test.want) {
			t.Errorf("%s: %v", test.name, got)
		}
	}
	drawn := map[place]int{}
	i := imitation(nil)
	i.Covariance = CovarianceClip{Ratio: 0.001, Low: -3, High: 0}
	for range 3000 {
		drawn[i.draw(rows)[0]]++
	}
	for p, n := range drawn {
		if math.Abs(float64(n)-1000) > 150 {
			t.Errorf("token %v was drawn %d times of 3000", p, n)
		}
	}
	if i.draw([]loss.Row{{Mask: []int32{0}, LogProbs: []float64{0}, Old: []float64{0}, Advantages: []float64{0}, Count: 1}}) != nil {
		t.Error("of no token some are drawn")
	}
}

// What is taken out has no gradient and stays in the denominator, however the mini-batch is cut.
func TestCovarianceClipIsOfTheMinibatch(t *testing.T) {
	var tables [][]float64
	for _, tokens := range []int{1, 24, 10_000} {
		engine := newBigram(vocab)
		cfg := testConfig()
		cfg.MicrobatchTokens, cfg.Imitation = tokens, imitation(replayed(12))
		cfg.Imitation.Covariance = CovarianceClip{Ratio: 0.3, Low: -0.2, High: 0.2}
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
	cfg.Imitation.Covariance = CovarianceClip{Ratio: 1, Low: math.Inf(-1), High: math.Inf(1)}
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
		{"gamma", func(i *Imitation) { i.Gamma = math.NaN() }},
		{"gamma", func(i *Imitation) { i.Gamma = -1 }},
		{"ratio", func(i *Imitation) { i.Covariance.Ratio = 2 }},
		{"bounds", func(i *Imitation) { i.Covariance = CovarianceClip{Ratio: 0.1, Low: 2, High: 2} }},
		{"random stream", func(i *Imitation) { i.Draws = nil }},
		{"clip_low", func(i *Imitation) { i.Clip.Low = 2 }},
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
