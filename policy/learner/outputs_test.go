package learner

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/ropewalk/ropewalk/policy"
)

func TestOutputs(t *testing.T) {
	engine := newBigram(vocab)
	sequences := [][]int32{{0, 1, 2, 3, 4}, {5}, {2, 2}, {1, 0, 3}}
	req := policy.ForwardRequest{
		Role: policy.RolePolicy, Sequences: sequences, Temperature: 0.7, Outputs: policy.OutLogProb, Keep: true,
	}
	heard := 0
	got, err := Outputs(context.Background(), engine, req, 4, func(done, total int) { heard = total })
	if err != nil {
		t.Fatal(err)
	}
	for i, seq := range sequences {
		if want := engine.logProbs(seq, 0.7); !slices.Equal(got.LogProbs[i], want) {
			t.Errorf("sequence %d: %v, want %v", i, got.LogProbs[i], want)
		}
	}
	if got.Entropies != nil || got.Values != nil || engine.largest != 5 ||
		engine.forwards != heard || heard != 3 || engine.idle() != nil {
		t.Errorf(
			"entropies %v, values %v; passes of up to %d tokens, %d of %d", got.Entropies, got.Values, engine.largest,
			engine.forwards, heard,
		)
	}
	req.Outputs |= policy.OutEntropy
	got, err = Outputs(context.Background(), engine, req, 100, nil)
	if err != nil || len(got.Entropies) != 4 || got.Entropies[0][1] <= 0 {
		t.Errorf("entropies %v, %v", got.Entropies, err)
	}
}

func TestOutputsOfAnEngineThatFails(t *testing.T) {
	engine := newBigram(vocab)
	req := policy.ForwardRequest{
		Role: policy.RolePolicy, Sequences: [][]int32{{1, 2}, {3, 4}}, Temperature: 1, Outputs: policy.OutLogProb,
	}
	engine.failAt = 2
	if _, err := Outputs(context.Background(), engine, req, 2, nil); !errors.Is(err, policy.ErrLost) {
		t.Errorf("got %v, want the engine's error", err)
	}
	req.Outputs = policy.OutValue // which a table of logits does not give
	if _, err := Outputs(context.Background(), engine, req, 2, nil); err == nil {
		t.Error("missing values were taken")
	}
	none, err := Outputs(context.Background(), engine, policy.ForwardRequest{Outputs: policy.OutLogProb}, 2, nil)
	if err != nil || len(none.LogProbs) != 0 {
		t.Errorf("no sequence gives %v, %v", none, err)
	}
}
