package learner

import (
	"context"
	"errors"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/rl/loss"
	"github.com/ropewalk/ropewalk/rl/optimizer"
	"github.com/ropewalk/ropewalk/rl/schedule"
)

func cloneConfig() CloneConfig {
	return CloneConfig{
		Steps: 40, Batch: 3, MicrobatchTokens: 8, WarmupSteps: 4, Decay: schedule.Cosine,
		Optimizer: policy.StepOptions{LR: 0.3,
			Rule: optimizer.AdamW{Beta1: 0.9, Beta2: 0.99, Epsilon: 1e-8}, ClipNorm: 1},
		Draw: stream(3),
	}
}

func demos() []Demo {
	return []Demo{
		{TokenIDs: []int32{0, 1, 2, 3}, LossMask: []int32{0, 1, 1, 1}},
		{TokenIDs: []int32{4, 0, 1}, LossMask: []int32{0, 0, 1}},
		{TokenIDs: []int32{5, 5}, LossMask: []int32{0, 0}}, // nothing to imitate
		{TokenIDs: []int32{3, 4, 0}, LossMask: []int32{0, 1, 1}},
	}
}

func TestCloneImitates(t *testing.T) {
	engine := newBigram(vocab)
	var last, total int
	got, err := Clone(context.Background(), engine, demos(), cloneConfig(), func(done, n int) { last, total = done, n })
	if err != nil {
		t.Fatal(err)
	}
	first, final := got.Steps[0], got.Steps[39]
	if len(got.Steps) != 40 || first.Loss < 1 || final.Loss > 0.1 {
		t.Errorf("%d steps from loss %g to %g, want 40 to under 0.1", len(got.Steps), first.Loss, final.Loss)
	}
	if first.LR != 0.3/4 || got.Steps[3].LR != 0.3 || final.LR >= 0.01 || final.OptimizerStep != 40 {
		t.Errorf("rates %g, %g … %g", first.LR, got.Steps[3].LR, final.LR)
	}
	// A batch of all three usable demonstrations has 3 + 1 + 2 tokens to imitate.
	if first.Rows != 3 || first.Tokens != 6 || last != total || total != engine.forwards || engine.idle() != nil {
		t.Errorf("first step %+v; progress %d of %d, %d forward passes", first, last, total, engine.forwards)
	}
	// The pairs that demonstrations show are learned; token 5 after 5, off every mask, is not.
	if p := math.Exp(engine.logSoftmax(0, 1)[1]); p < 0.9 {
		t.Errorf("p(1 | 0) = %g", p)
	}
	if engine.table[5*vocab+5] != newBigram(vocab).table[5*vocab+5] {
		t.Error("a token off the mask was learned")
	}
}

func TestCloneRepeats(t *testing.T) {
	a, b := newBigram(vocab), newBigram(vocab)
	x, err := Clone(context.Background(), a, demos(), cloneConfig(), nil)
	if err != nil {
		t.Fatal(err)
	}
	y, err := Clone(context.Background(), b, demos(), cloneConfig(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(x, y) + cmp.Diff(a.table, b.table); diff != "" {
		t.Errorf("a second cloning differs:\n%s", diff)
	}
}

func TestCloneDrawsEachBeforeAnyTwice(t *testing.T) {
	c := cloner{cfg: CloneConfig{Batch: 4, Draw: stream(8)}, demos: make([]Demo, 10)}
	seen := map[int]int{}
	for range 5 { // two rounds of ten
		for _, i := range c.draw() {
			seen[i]++
		}
	}
	for i := range 10 {
		if seen[i] != 2 {
			t.Errorf("demonstration %d was drawn %d times, want 2", i, seen[i])
		}
	}
}

func TestCloneRefuses(t *testing.T) {
	run := func(d []Demo, spoil func(*CloneConfig)) error {
		cfg := cloneConfig()
		if spoil != nil {
			spoil(&cfg)
		}
		_, err := Clone(context.Background(), newBigram(vocab), d, cfg, nil)
		return err
	}
	if err := run([]Demo{{TokenIDs: []int32{1, 2}, LossMask: []int32{1, 1}}}, nil); !errors.Is(err, loss.ErrBadRow) {
		t.Errorf("first token under the mask: %v", err)
	}
	for name, err := range map[string]error{
		"no demonstration": run(nil, nil),
		"only dead ones":   run(demos()[2:3], nil),
		"ragged":           run([]Demo{{TokenIDs: []int32{1}, LossMask: nil}}, nil),
		"steps":            run(demos(), func(c *CloneConfig) { c.Steps = 0 }),
		"batch":            run(demos(), func(c *CloneConfig) { c.Batch = 0 }),
		"decay":            run(demos(), func(c *CloneConfig) { c.Decay = "step" }),
		"draw":             run(demos(), func(c *CloneConfig) { c.Draw = nil }),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
