package learner

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/rl/loss"
)

// memoryConfig plans one mini-batch per 12 rows, in micro-batches of 24 tokens.
func memoryConfig() Config {
	cfg := testConfig()
	cfg.Epochs = 2
	return cfg
}

// requireSameTable compares what was learnt up to rounding.
func requireSameTable(t *testing.T, want, got *bigram) {
	t.Helper()
	for k := range want.table {
		if d := math.Abs(want.table[k] - got.table[k]); d > 1e-5 {
			t.Fatalf("entry %d is %g, want %g", k, got.table[k], want.table[k])
		}
	}
}

// A memory with room for half a micro-batch: the mini-batch is taken again, and all that follow are cut smaller. What
// is learnt and recorded is the same up to rounding, and nothing is added up twice.
func TestSmallerMicrobatches(t *testing.T) {
	want, got := newBigram(vocab), newBigram(vocab)
	batch := testBatch(want, 12, 1)
	cfg := memoryConfig()
	whole := mustUpdate(t, want, batch, cfg)
	if whole.Smaller != nil || want.largest <= 12 {
		t.Fatalf("a test of nothing: %+v, %d tokens", whole.Smaller, want.largest)
	}
	got.room, cfg.Shuffle = want.largest-1, stream(1)
	last, total := 0, 0
	result, err := Update(context.Background(), got, batch, cfg, func(done, n int) { last, total = done, n })
	if err != nil {
		t.Fatal(err)
	}
	if err := got.idle(); err != nil {
		t.Fatal(err)
	}
	if result.Smaller == nil || *result.Smaller != (Smaller{From: want.largest, To: want.largest / 2}) {
		t.Errorf("recorded %+v, want from %d to its half", result.Smaller, want.largest)
	}
	if got.largest > want.largest/2 || got.discards != 1 {
		t.Errorf("%d tokens at most after %d discards", got.largest, got.discards)
	}
	requireSameTable(t, want, got)
	micros := 0
	for i, u := range result.Updates {
		w := whole.Updates[i]
		if u.Rows != w.Rows || u.Tokens != w.Tokens || math.Abs(u.Loss-w.Loss) > 1e-6 ||
			math.Abs(*u.GradNorm-*w.GradNorm) > 1e-6 || u.OptimizerStep != w.OptimizerStep {
			t.Errorf("update %d: %+v, want %+v", i, u, w)
		}
		micros += result.Details[i].Microbatches
		if result.Details[i].Microbatches <= whole.Details[i].Microbatches {
			t.Errorf(
				"update %d: %d micro-batches after %d", i, result.Details[i].Microbatches,
				whole.Details[i].Microbatches,
			)
		}
	}
	if last != total || total != micros {
		t.Errorf("progress ends at %d of %d, want %d", last, total, micros)
	}
}

// No second time: a memory that is too small for half a micro-batch is an error that says what was tried and what
// the engine said.
func TestMemoryThatIsTooSmall(t *testing.T) {
	for name, c := range map[string]struct {
		room  int
		limit int
		want  string
	}{
		"for half a micro-batch": {6, 24, "were tried, after"},
		"for one sequence":       {2, 1, "each micro-batch is one sequence already"},
	} {
		engine := newBigram(vocab)
		cfg := memoryConfig()
		cfg.MicrobatchTokens = c.limit
		batch := testBatch(engine, 12, 1)
		engine.room = c.room
		result, err := Update(context.Background(), engine, batch, cfg, nil)
		var full *outOfMemoryError
		if !errors.Is(err, policy.ErrOutOfMemory) || !errors.As(err, &full) ||
			!strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "80 GiB") {
			t.Errorf("%s: got %v", name, err)
			continue
		}
		if full.Smaller != result.Smaller || (full.Smaller == nil) != (c.limit == 1) ||
			engine.idle() != nil || engine.steps != 0 {
			t.Errorf("%s: %+v, recorded %+v, %v", name, full.Smaller, result.Smaller, engine.idle())
		}
	}
}

// The forward pass over a whole mini-batch, which some objectives take first, is cut smaller too; so is a step.
func TestSmallerMicrobatchesElsewhere(t *testing.T) {
	t.Run("first pass", func(t *testing.T) {
		want, got := newBigram(vocab), newBigram(vocab)
		batch := testBatch(want, 12, 1)
		cfg := memoryConfig()
		cfg.Objective.Policy = loss.PPOClip{Low: 0.2, High: 0.28, Dual: 3}
		cfg.Objective.SequenceMask = &loss.SequenceMask{Delta: 10, Shrink: true}
		if !cfg.Objective.NeedsMinibatch() {
			t.Fatal("a test of nothing")
		}
		mustUpdate(t, want, batch, cfg)
		got.room, cfg.Shuffle = want.largest-1, stream(1)
		if result := mustUpdate(t, got, batch, cfg); result.Smaller == nil || got.discards != 0 {
			t.Errorf("%+v after %d discards: no gradient was lost", result.Smaller, got.discards)
		}
		requireSameTable(t, want, got)
	})
	t.Run("step", func(t *testing.T) {
		want, got := newBigram(vocab), newBigram(vocab)
		batch := testBatch(want, 12, 1)
		cfg := memoryConfig()
		mustUpdate(t, want, batch, cfg)
		got.fullStep, cfg.Shuffle = true, stream(1)
		if result := mustUpdate(t, got, batch, cfg); result.Smaller == nil || got.discards != 1 {
			t.Errorf("%+v after %d discards", result.Smaller, got.discards)
		}
		requireSameTable(t, want, got)
	})
	t.Run("cloning", func(t *testing.T) {
		want, got := newBigram(vocab), newBigram(vocab)
		cfg := cloneConfig()
		whole, err := Clone(context.Background(), want, demos(), cfg, nil)
		if err != nil {
			t.Fatal(err)
		}
		cfg = cloneConfig()
		got.room = want.largest - 1
		result, err := Clone(context.Background(), got, demos(), cfg, nil)
		if err != nil || result.Smaller == nil || got.idle() != nil {
			t.Fatalf("%v, %+v, %v", err, result.Smaller, got.idle())
		}
		requireSameTable(t, want, got)
		for i, s := range result.Steps {
			if w := whole.Steps[i]; s.Rows != w.Rows || s.Tokens != w.Tokens || math.Abs(s.Loss-w.Loss) > 1e-6 {
				t.Errorf("step %d: %+v, want %+v", i, s, w)
			}
		}
	})
	t.Run("critic", func(t *testing.T) {
		want, got := newValuer(), newValuer()
		batch := valued(testBatch(newBigram(vocab), 12, 1))
		cfg := memoryConfig()
		whole, err := UpdateCritic(context.Background(), want, batch, cfg, criticOf(1, 0.2), nil)
		if err != nil {
			t.Fatal(err)
		}
		cfg.Shuffle = stream(1)
		got.room = 23
		steps, err := UpdateCritic(context.Background(), got, batch, cfg, criticOf(1, 0.2), nil)
		if err != nil {
			t.Fatal(err)
		}
		for i, s := range steps {
			w := whole[i]
			if math.Abs(s.Loss-w.Loss) > 1e-6 || math.Abs(s.GradNorm-w.GradNorm) > 1e-6 ||
				math.Abs(s.Return-w.Return) > 1e-6 || s.Smaller == nil {
				t.Errorf("step %d: %+v, want %+v", i, s, w)
			}
		}
	})
}
