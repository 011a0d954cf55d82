package learner

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/rl/loss"
	"github.com/ropewalk/ropewalk/rl/optimizer"
	"github.com/ropewalk/ropewalk/schema"
)

const vocab = 6

func stream(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 99)) }

func testConfig() Config {
	return Config{
		Minibatches: 2, Epochs: 1, MicrobatchTokens: 24,
		Objective: loss.Objective{
			Policy: loss.PPOClip{Low: 0.2, High: 0.28, Dual: 3}, Aggregation: loss.Aggregation{Mode: loss.TokenMean},
		},
		Temperature: 1,
		Optimizer: policy.StepOptions{LR: 0.01,
			Rule: optimizer.AdamW{Beta1: 0.9, Beta2: 0.99, Epsilon: 1e-8}, ClipNorm: 1},
		Shuffle: stream(1),
	}
}

// testBatch makes n on-policy rows of the engine, with random tokens and advantages ±1.
func testBatch(engine *bigram, n int, temperature float64) []schema.BatchRow {
	rng := stream(5)
	rows := make([]schema.BatchRow, n)
	for i := range rows {
		length := 3 + rng.IntN(8)
		r := schema.BatchRow{
			GroupID: fmt.Sprintf("g%02d", i/4), TrajectoryID: fmt.Sprintf("t%02d", i), Count: int32(1 + i%3), Weight: 1,
		}
		for t := range length {
			r.TokenIDs = append(r.TokenIDs, rng.Int32N(vocab))
			mask := int32(0)
			if t > 0 && rng.IntN(4) > 0 {
				mask = 1
			}
			r.LossMask = append(r.LossMask, mask)
			r.Advantages = append(r.Advantages, float32(mask)*float32(1-2*(i%2)))
		}
		r.OldLogProbs = engine.logProbs(r.TokenIDs, temperature)
		rows[i] = r
	}
	return rows
}

func mustUpdate(t *testing.T, engine *bigram, batch []schema.BatchRow, cfg Config) Result {
	t.Helper()
	got, err := Update(context.Background(), engine, batch, cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := engine.idle(); err != nil {
		t.Fatal(err)
	}
	return got
}

func TestUpdateFollowsTheAdvantage(t *testing.T) {
	engine := newBigram(vocab)
	good := schema.BatchRow{
		GroupID: "g", TrajectoryID: "a", Count: 1, TokenIDs: []int32{0, 1, 2}, LossMask: []int32{0, 1, 1},
		Advantages: []float32{0, 1, 1},
	}
	bad := schema.BatchRow{
		GroupID: "g", TrajectoryID: "b", Count: 1, TokenIDs: []int32{0, 3, 4}, LossMask: []int32{0, 1, 1},
		Advantages: []float32{0, -1, -1},
	}
	for _, r := range []*schema.BatchRow{&good, &bad} {
		r.OldLogProbs = engine.logProbs(r.TokenIDs, 1)
	}
	mustUpdate(t, engine, []schema.BatchRow{good, bad}, testConfig())
	for token := 1; token <= 2; token++ {
		if up := engine.logProbs(good.TokenIDs, 1)[token]; up <= good.OldLogProbs[token] {
			t.Errorf("good token %d went from %g to %g", token, good.OldLogProbs[token], up)
		}
		if down := engine.logProbs(bad.TokenIDs, 1)[token]; down >= bad.OldLogProbs[token] {
			t.Errorf("bad token %d went from %g to %g", token, bad.OldLogProbs[token], down)
		}
	}
}

func TestUpdateRecord(t *testing.T) {
	engine := newBigram(vocab)
	batch := testBatch(engine, 12, 0.7)
	cfg := testConfig()
	cfg.Temperature, cfg.Epochs = 0.7, 2
	var heard []int
	total := 0
	got, err := Update(
		context.Background(), engine, batch, cfg, func(done, n int) { heard, total = append(heard, done), n },
	)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Updates) != 4 || len(got.Details) != 4 || got.Rows != 12 || engine.steps != 4 {
		t.Fatalf("%d updates, %d rows, %d steps; want 4, 12, 4", len(got.Updates), got.Rows, engine.steps)
	}
	if got.LogProbDrift > 1e-6 {
		t.Errorf("drift of an on-policy batch is %g", got.LogProbDrift)
	}
	micros, rows := 0, 0
	for i, u := range got.Updates {
		micros += got.Details[i].Microbatches
		rows += int(u.Rows)
		if u.OptimizerStep != int64(i+1) || u.Minibatch != int32(i) || u.LR != 0.01 ||
			!(*u.GradNorm > 0) || !(*u.Entropy > 0) || *u.Entropy > math.Log(vocab) {
			t.Errorf("update %d: %+v", i, u)
		}
		if split := *u.ClipFractionPositive + *u.ClipFractionNegative; math.Abs(split-u.ClipFraction) > 1e-12 {
			t.Errorf("update %d: clipped tokens by sign add up to %g, want %g", i, split, u.ClipFraction)
		}
		if got.Details[i].Epoch != i/2 {
			t.Errorf("update %d is of epoch %d", i, got.Details[i].Epoch)
		}
	}
	if first := got.Updates[0]; math.Abs(first.KL) > 1e-6 || first.ClipFraction != 0 ||
		math.Abs(first.RatioMax-1) > 1e-6 {
		t.Errorf("first step is off policy: %+v", first)
	}
	if later := got.Updates[3]; *later.RatioMin <= 0 || *later.RatioMin >= later.RatioMax {
		t.Errorf("ratios from %v to %v after steps", *later.RatioMin, later.RatioMax)
	}
	if later := got.Updates[3]; later.RatioMax <= 1 || got.Details[3].LogProbDrift == 0 {
		t.Errorf("last step is still on policy: %+v", later)
	}
	if rows != 24 || got.Updates[0].Tokens+got.Updates[1].Tokens != got.Tokens {
		t.Errorf("two epochs cover %d rows and %d tokens, want 24 and %d each", rows, got.Updates[0].Tokens, got.Tokens)
	}
	if len(heard) != micros || total != micros || heard[len(heard)-1] != micros {
		t.Errorf("progress %v of %d, want 1…%d", heard, total, micros)
	}
	if engine.largest > cfg.MicrobatchTokens {
		t.Errorf("a forward pass held %d tokens, want at most %d", engine.largest, cfg.MicrobatchTokens)
	}
}

// The record says which rows of the batch an optimiser step learnt from, so that its loss and its clipped tokens can be
// computed again.
func TestUpdateNamesTheRowsOfEachMinibatch(t *testing.T) {
	engine := newBigram(vocab)
	batch := testBatch(engine, 12, 1)
	for _, i := range []int{0, 5} { // rows without loss tokens have numbers too, and no mini-batch has them
		clear(batch[i].LossMask)
		clear(batch[i].Advantages)
	}
	for i := range batch { // off policy, so that ratios are clipped
		for j := range batch[i].OldLogProbs {
			batch[i].OldLogProbs[j] -= 0.3 * float32(j%3)
		}
	}
	cfg := testConfig()
	cfg.Epochs = 2
	got := mustUpdate(t, engine, batch, cfg)
	for epoch := range 2 {
		var numbers []int32
		for _, u := range got.Updates[2*epoch : 2*epoch+2] {
			if u.Epoch == nil || int(*u.Epoch) != epoch || len(u.BatchRows) != int(u.Rows) {
				t.Fatalf("epoch %d: %+v", epoch, u)
			}
			numbers = append(numbers, u.BatchRows...)
		}
		slices.Sort(numbers)
		if want := []int32{1, 2, 3, 4, 6, 7, 8, 9, 10, 11}; !slices.Equal(numbers, want) {
			t.Errorf("epoch %d takes the rows %v, want %v", epoch, numbers, want)
		}
	}
	first := got.Updates[0]
	var rows []schema.BatchRow
	for _, n := range first.BatchRows {
		rows = append(rows, batch[n])
	}
	again := testConfig()
	again.Minibatches = 1
	one := mustUpdate(t, newBigram(vocab), rows, again).Updates[0]
	if math.Abs(one.Loss-first.Loss) > 1e-9 || one.ClipFraction != first.ClipFraction || one.Tokens != first.Tokens {
		t.Errorf("from its rows: %+v, recorded: %+v", one, first)
	}
	if one.ClipFraction == 0 {
		t.Error("no token was clipped, so that nothing was compared")
	}
}

func TestUpdateIgnoresOrderOfRows(t *testing.T) {
	want := newBigram(vocab)
	batch := testBatch(want, 12, 1)
	wantResult := mustUpdate(t, want, batch, testConfig())
	got := newBigram(vocab)
	stream(2).Shuffle(len(batch), func(i, j int) { batch[i], batch[j] = batch[j], batch[i] })
	gotResult := mustUpdate(t, got, batch, testConfig())
	if diff := cmp.Diff(wantResult, gotResult); diff != "" {
		t.Errorf("order changed the record:\n%s", diff)
	}
	if diff := cmp.Diff(want.table, got.table); diff != "" {
		t.Errorf("order changed the policy:\n%s", diff)
	}
}

func TestGradientDoesNotDependOnMicrobatches(t *testing.T) {
	for _, mode := range loss.Modes() {
		var want []float64
		var wantLoss float64
		for i, limit := range []int{1 << 20, 24, 1} {
			engine := newBigram(vocab)
			cfg := testConfig()
			cfg.Minibatches, cfg.MicrobatchTokens = 1, limit
			cfg.Objective.Aggregation = loss.Aggregation{Mode: mode, Horizon: 10}
			got := mustUpdate(t, engine, testBatch(engine, 12, 1), cfg)
			if i == 0 {
				want, wantLoss = engine.applied[0], got.Updates[0].Loss
				continue
			}
			if engine.forwards < 2 || math.Abs(got.Updates[0].Loss-wantLoss) > 1e-9*(1+math.Abs(wantLoss)) {
				t.Errorf(
					"%s: loss %g in %d micro-batches, want %g", mode, got.Updates[0].Loss, engine.forwards, wantLoss,
				)
			}
			for k := range want {
				if math.Abs(engine.applied[0][k]-want[k]) > 1e-6*(1+math.Abs(want[k])) {
					t.Fatalf(
						"%s: gradient %d is %g at limit %d, want %g", mode, k, engine.applied[0][k], limit, want[k],
					)
				}
			}
		}
	}
}

// The gradient that reaches the optimiser is that of the loss, by central differences over the table.
func TestGradientIsThatOfTheLoss(t *testing.T) {
	engine := newBigram(vocab)
	batch := testBatch(engine, 8, 1)
	for i := range batch { // off policy, so that ratios differ from 1
		for k := range batch[i].OldLogProbs {
			if batch[i].LossMask[k] == 1 {
				batch[i].OldLogProbs[k] = min(0, batch[i].OldLogProbs[k]+0.1*float32(i%3-1))
			}
		}
	}
	cfg := testConfig()
	cfg.Minibatches = 1
	mustUpdate(t, engine, batch, cfg)
	at := func(table []float64) float64 {
		probe := newBigram(vocab)
		copy(probe.table, table)
		return tableLoss(t, probe, batch, cfg)
	}
	base := newBigram(vocab).table
	for k := range base {
		const h = 1e-5
		moved := append([]float64(nil), base...)
		moved[k] = base[k] + h
		up := at(moved)
		moved[k] = base[k] - h
		if want := (up - at(moved)) / (2 * h); math.Abs(engine.applied[0][k]-want) > 1e-5 {
			t.Errorf("gradient %d is %g, difference %g", k, engine.applied[0][k], want)
		}
	}
}

func widen(values []float32) []float64 {
	out := make([]float64, len(values))
	for i, v := range values {
		out[i] = float64(v)
	}
	return out
}

// tableLoss is the loss of a whole batch in float64 throughout.
func tableLoss(t *testing.T, engine *bigram, batch []schema.BatchRow, cfg Config) float64 {
	t.Helper()
	var rows []loss.Row[float64]
	var masks [][]int32
	var counts []int32
	for _, b := range batch {
		r := loss.Row[float64]{
			LogProbs: make([]float64, len(b.TokenIDs)), Old: widen(b.OldLogProbs), Advantages: widen(b.Advantages),
			Mask: b.LossMask, Count: b.Count,
		}
		for k := 1; k < len(b.TokenIDs); k++ {
			r.LogProbs[k] = engine.logSoftmax(b.TokenIDs[k-1], 1)[b.TokenIDs[k]]
		}
		rows, masks, counts = append(rows, r), append(masks, b.LossMask), append(counts, b.Count)
	}
	d, err := cfg.Objective.Aggregation.Denominator(masks, counts)
	if err != nil {
		t.Fatal(err)
	}
	got, err := loss.Evaluate(cfg.Objective.Policy, rows, d)
	if err != nil {
		t.Fatal(err)
	}
	return got.Loss
}

func TestUpdateCountEqualsCopies(t *testing.T) {
	once, many := newBigram(vocab), newBigram(vocab)
	cfg := testConfig()
	cfg.Minibatches = 1
	batch := testBatch(once, 8, 1)
	var copies []schema.BatchRow
	for _, b := range batch {
		for n := range b.Count {
			c := b
			c.TrajectoryID, c.Count, c.Advantages = fmt.Sprint(b.TrajectoryID, "/", n), 1, nil
			for _, a := range b.Advantages {
				c.Advantages = append(c.Advantages, a/float32(b.Count))
			}
			copies = append(copies, c)
		}
	}
	a := mustUpdate(t, once, batch, cfg)
	cfg.Shuffle = stream(1)
	b := mustUpdate(t, many, copies, cfg)
	if math.Abs(a.Updates[0].Loss-b.Updates[0].Loss) > 1e-6 || math.Abs(
		*a.Updates[0].Entropy-*b.Updates[0].Entropy,
	) > 1e-6 {
		t.Errorf("once %+v, copies %+v", a.Updates[0], b.Updates[0])
	}
	for k, g := range once.applied[0] {
		if math.Abs(g-many.applied[0][k]) > 1e-6 {
			t.Errorf("gradient %d is %g, of copies %g", k, g, many.applied[0][k])
		}
	}
}

func TestUpdateWithoutLossTokensMovesNothing(t *testing.T) {
	engine := newBigram(vocab)
	row := schema.BatchRow{
		GroupID: "g", TrajectoryID: "t", Count: 1, TokenIDs: []int32{1, 2}, LossMask: []int32{0, 0},
		OldLogProbs: []float32{0, 0}, Advantages: []float32{0, 0},
	}
	for name, batch := range map[string][]schema.BatchRow{"no row": nil, "a dead row": {row}} {
		if got := mustUpdate(
			t, engine, batch, testConfig(),
		); len(got.Updates) != 0 || engine.forwards != 0 || engine.steps != 0 {
			t.Errorf("%s: %+v after %d forward passes", name, got, engine.forwards)
		}
	}
}

func TestUpdateTakesFewerStepsThanMinibatches(t *testing.T) {
	engine := newBigram(vocab)
	cfg := testConfig()
	cfg.Minibatches = 5
	if got := mustUpdate(t, engine, testBatch(engine, 3, 1), cfg); len(got.Updates) != 3 {
		t.Errorf("%d optimiser steps over 3 rows, want 3", len(got.Updates))
	}
}

func TestUpdateRefusesRows(t *testing.T) {
	for name, tt := range map[string]struct {
		spoil func(*schema.BatchRow)
		want  error
	}{
		"imported":     {func(r *schema.BatchRow) { r.OldLogProbs = nil }, errNoLogProbs},
		"short mask":   {func(r *schema.BatchRow) { r.LossMask = r.LossMask[1:] }, loss.ErrBadRow},
		"short old":    {func(r *schema.BatchRow) { r.OldLogProbs = r.OldLogProbs[1:] }, loss.ErrBadRow},
		"first token":  {func(r *schema.BatchRow) { r.LossMask[0] = 1 }, loss.ErrBadRow},
		"zero count":   {func(r *schema.BatchRow) { r.Count = 0 }, loss.ErrBadRow},
		"positive old": {func(r *schema.BatchRow) { r.LossMask[1], r.OldLogProbs[1] = 1, 2 }, loss.ErrBadRow},
	} {
		engine := newBigram(vocab)
		batch := testBatch(engine, 6, 1)
		tt.spoil(&batch[4])
		_, err := Update(context.Background(), engine, batch, testConfig(), nil)
		if !errors.Is(err, tt.want) {
			t.Errorf("%s: got %v, want %v", name, err, tt.want)
		}
		if !strings.Contains(fmt.Sprint(err), "trajectory t04 of group g01") {
			t.Errorf("%s: %v does not name the row", name, err)
		}
		if engine.steps != 0 {
			t.Errorf("%s: a step was taken", name)
		}
		if err := engine.idle(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestUpdateDiscardsOnFailure(t *testing.T) {
	t.Run("forward", func(t *testing.T) {
		engine := newBigram(vocab)
		engine.failAt = 2
		_, err := Update(context.Background(), engine, testBatch(engine, 12, 1), testConfig(), nil)
		if !errors.Is(err, policy.ErrLost) || engine.discards != 1 || engine.idle() != nil {
			t.Errorf("got %v after %d discards, %v", err, engine.discards, engine.idle())
		}
	})
	t.Run("step", func(t *testing.T) {
		engine := newBigram(vocab)
		engine.failStep = true
		_, err := Update(context.Background(), engine, testBatch(engine, 12, 1), testConfig(), nil)
		var bad *policy.NonFiniteError
		if !errors.As(err, &bad) || engine.idle() != nil {
			t.Errorf("got %v, %v", err, engine.idle())
		}
	})
	t.Run("cancelled", func(t *testing.T) {
		engine := newBigram(vocab)
		ctx, cancel := context.WithCancel(context.Background())
		_, err := Update(ctx, engine, testBatch(engine, 12, 1), testConfig(), func(done, _ int) {
			if done == 2 {
				cancel()
			}
		})
		if !errors.Is(err, context.Canceled) || engine.idle() != nil {
			t.Errorf("got %v, %v", err, engine.idle())
		}
	})
}

func TestUpdateRefusesConfig(t *testing.T) {
	for name, spoil := range map[string]func(*Config){
		"minibatches": func(c *Config) { c.Minibatches = 0 },
		"epochs":      func(c *Config) { c.Epochs = 0 },
		"tokens":      func(c *Config) { c.MicrobatchTokens = 0 },
		"surrogate":   func(c *Config) { c.Objective.Policy = nil },
		"clip":        func(c *Config) { c.Objective.Policy = loss.PPOClip{Low: -1} },
		"aggregation": func(c *Config) { c.Objective.Aggregation.Mode = "mean" },
		"temperature": func(c *Config) { c.Temperature = 0 },
		"shuffle":     func(c *Config) { c.Shuffle = nil },
	} {
		cfg := testConfig()
		spoil(&cfg)
		if _, err := Update(context.Background(), newBigram(vocab), nil, cfg, nil); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
