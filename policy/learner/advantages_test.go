package learner

import (
	"context"
	"math"
	"testing"

	"github.com/ropewalk/ropewalk/schema"
)

// Rows of three and one loss tokens; the copies of the second one count once, and so does nothing off the mask.
func TestUpdateDescribesItsAdvantages(t *testing.T) {
	engine := newBigram(vocab)
	batch := []schema.BatchRow{
		{
			GroupID: "g", TrajectoryID: "a", Count: 1, Weight: 1, TokenIDs: []int32{1, 2, 3, 4},
			LossMask: []int32{0, 1, 1, 1}, Advantages: []float32{9, 2, -1, 0},
		},
		{
			GroupID: "g", TrajectoryID: "b", Count: 7, Weight: 1, TokenIDs: []int32{1, 2}, LossMask: []int32{0, 1},
			Advantages: []float32{0, 3},
		},
	}
	for i := range batch {
		batch[i].OldLogProbs = engine.logProbs(batch[i].TokenIDs, 1)
	}
	cfg := testConfig()
	cfg.Minibatches, cfg.Epochs = 1, 1
	u := mustUpdate(t, engine, batch, cfg).Updates[0]
	for name, c := range map[string]struct {
		got  *float64
		want float64
	}{
		"mean": {u.AdvantageMean, 1}, "std": {
			u.AdvantageStd, math.Sqrt(2.5),
		}, "min": {u.AdvantageMin, -1}, "max": {u.AdvantageMax, 3},
		"zero": {u.AdvantageZero, 0.25}, "positive": {u.AdvantagePositive, 0.5},
	} {
		if c.got == nil || math.Abs(*c.got-c.want) > 1e-12 {
			t.Errorf("%s is %v, want %g", name, c.got, c.want)
		}
	}
}

// What the mini-batches record, pooled, is what the whole batch has, however it is cut.
func TestPooledAdvantagesDoNotDependOnTheMinibatches(t *testing.T) {
	cfg := testConfig()
	pooled := func(minibatches int) schema.Advantages {
		engine := newBigram(vocab)
		batch := testBatch(engine, 12, 1)
		for i := range batch {
			for k := range batch[i].Advantages {
				batch[i].Advantages[k] *= float32(i%5) / 3
			}
		}
		cfg := cfg
		cfg.Minibatches, cfg.Shuffle = minibatches, stream(3)
		return *schema.AdvantagesOf(mustUpdate(t, engine, batch, cfg).Updates)
	}
	whole := pooled(1)
	if !(whole.Zero > 0) || !(whole.Positive > 0) || !(whole.Std > 0) {
		t.Fatalf("a test of nothing: %+v", whole)
	}
	for _, n := range []int{2, 5, 12} {
		got := pooled(n)
		for i, pair := range [][2]float64{{got.Mean, whole.Mean}, {got.Std, whole.Std}, {got.Min, whole.Min},
			{got.Max, whole.Max}, {got.Zero, whole.Zero}, {got.Positive, whole.Positive}} {
			if math.Abs(pair[0]-pair[1]) > 1e-12 {
				t.Errorf("%d mini-batches, figure %d: %g, want %g", n, i, pair[0], pair[1])
			}
		}
	}
}

// Ratios out of bounds on all four sides are in the record, and those that a clip acts on are the clip fraction.
func TestUpdateRecordsRatiosOnAllSides(t *testing.T) {
	engine := newBigram(vocab)
	batch := testBatch(engine, 12, 1)
	for i := range batch {
		for k := range batch[i].OldLogProbs {
			by := float32(1 - 2*((i+k)%2)) // ratios e and 1/e; no probability is above 1
			if batch[i].OldLogProbs[k]+by > 0 {
				by = -1
			}
			batch[i].OldLogProbs[k] += by
		}
	}
	cfg := testConfig()
	cfg.Minibatches, cfg.Epochs = 1, 1
	got, err := Update(context.Background(), engine, batch, cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	u := got.Updates[0]
	sum := *u.ClipFractionPositive + *u.ClipFractionNegative + *u.BelowPositive + *u.AboveNegative
	if math.Abs(sum-1) > 1e-12 || !(*u.BelowPositive > 0) || !(*u.AboveNegative > 0) {
		t.Errorf(
			"all ratios are out of bounds, and the sides add up to %g: below %g, above %g", sum, *u.BelowPositive,
			*u.AboveNegative,
		)
	}
}

// Of values 0 with returns in [0, 1) and old values half a unit off, those clip whose return lies beyond.
func TestTheCriticCountsWhatItClips(t *testing.T) {
	batch := valued(testBatch(newBigram(vocab), 8, 1))
	tokens, clipped, returns := 0, 0, 0.0
	for i := range batch {
		for k, m := range batch[i].LossMask {
			if m == 0 {
				continue
			}
			batch[i].Values[k] = -0.5
			tokens++
			returns += float64(batch[i].Returns[k])
			if r := float64(batch[i].Returns[k]); math.Abs(-0.4-r) > math.Abs(r) { // 0 is clipped to −0.4
				clipped++
			}
		}
	}
	cfg := testConfig()
	cfg.Minibatches, cfg.Epochs = 1, 1
	steps, err := UpdateCritic(context.Background(), newValuer(), batch, cfg, criticOf(1, 0.1), nil)
	if err != nil {
		t.Fatal(err)
	}
	s := steps[0]
	if math.Abs(s.ClipFraction-float64(clipped)/float64(tokens)) > 1e-12 || clipped == 0 {
		t.Errorf("clip fraction %g, want %d of %d", s.ClipFraction, clipped, tokens)
	}
	if math.Abs(s.Return-returns/float64(tokens)) > 1e-9 || math.Abs(s.Value) > 1e-9 {
		t.Errorf("value %g of return %g, want 0 of %g", s.Value, s.Return, returns/float64(tokens))
	}
	cfg.Shuffle = stream(3)
	if steps, err = UpdateCritic(
		context.Background(), newValuer(), batch, cfg, criticOf(1, 0), nil,
	); err != nil || steps[0].ClipFraction != 0 {
		t.Errorf("without a clip: %v, %v", steps, err)
	}
}
