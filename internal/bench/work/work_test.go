package work

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/gpu/torch"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/checkpoint"
	"github.com/ropewalk/ropewalk/policy/cpu"
	"github.com/ropewalk/ropewalk/rl/optimizer"
)

var tiny = checkpoint.Shape{Vocab: 11, Hidden: 16, Layers: 1, Heads: 2, KVHeads: 1, HeadDim: 8, FFN: 24, Positions: 32,
	RopeTheta: 10000, NormEps: 1e-6, Pad: -1}

func TestRandomRows(t *testing.T) {
	rows := RandomRows(1, 2, 11, 3, 200)
	require.Len(t, rows, 3)
	seen := map[int32]bool{}
	for _, r := range rows {
		require.Len(t, r, 200)
		for _, token := range r {
			seen[token] = true
		}
	}
	require.Len(t, seen, 11)
	require.Equal(t, rows, RandomRows(1, 2, 11, 3, 200))
}

// A step on a micro-batch moves the random policy towards the rows.
func TestMicroBatchTrains(t *testing.T) {
	e, err := cpu.Open(cpu.Options{})
	require.NoError(t, err)
	defer e.Close()
	require.NoError(t, LoadRandom(t.Context(), e, tiny))
	rows := RandomRows(1, 2, tiny.Vocab, 4, 8)
	m := MicroBatch{rows, LanguageModelling(rows, 32)}
	require.Equal(t, float32(-1)/32, m.Cotangents.LogProbs[3][7])
	likelihood := func() (sum float32) {
		out, err := e.Forward(t.Context(), policy.ForwardRequest{Role: policy.RolePolicy, Sequences: rows,
			Temperature: 1, Outputs: policy.OutLogProb})
		require.NoError(t, err)
		for _, r := range out.LogProbs {
			for _, x := range r {
				sum += x
			}
		}
		return sum
	}
	before := likelihood()
	require.NoError(t, m.Run(t.Context(), e))
	_, err = e.Step(t.Context(), policy.RolePolicy, policy.StepOptions{LR: 1e-2,
		Rule: optimizer.AdamW{Beta1: 0.9, Beta2: 0.95, Epsilon: 1e-8}})
	require.NoError(t, err)
	require.Greater(t, likelihood(), before)
}

func TestTax(t *testing.T) {
	require.InDelta(t, 0.25, Cost{Seconds: 4, Used: torch.Usage{TorchSeconds: 3}}.Tax(), 1e-12)
}
