package policytest

import (
	"context"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/policy"
)

func testForward(t *testing.T, f TrainerFixture) {
	e := opened(t, f)
	seqs := sequences(f, 1, 5, 1, 12)
	out := forward(t, e, seqs, false)
	require.Zero(t, out.Kept, "nothing was to be kept")
	require.Nil(t, out.Values)
	for i, s := range seqs {
		require.Len(t, out.LogProbs[i], len(s))
		require.Len(t, out.Entropies[i], len(s))
		require.Zero(t, out.LogProbs[i][0], "nothing predicts the first token")
		require.Zero(t, out.Entropies[i][0])
		for j := 1; j < len(s); j++ {
			require.Negative(t, out.LogProbs[i][j])
			require.Positive(t, out.Entropies[i][j])
			require.LessOrEqual(t, float64(out.Entropies[i][j]), math.Log(float64(f.Vocab))+1e-5)
		}
	}
	empty := forward(t, e, nil, false)
	require.Empty(t, empty.LogProbs)
}

// testForwardBatch: a sequence's outputs are its own, and tokens see only what is before them.
func testForwardBatch(t *testing.T, f TrainerFixture) {
	e := opened(t, f)
	seqs := sequences(f, 2, 9, 30, 3, 70, 17)
	all := forward(t, e, seqs, false)
	for i, s := range seqs {
		alone := forward(t, e, [][]int32{s}, false)
		requireClose(t, alone.LogProbs, all.LogProbs[i:i+1], 1e-5, "log-probability")
		requireClose(t, alone.Entropies, all.Entropies[i:i+1], 1e-5, "entropy")
	}
	changed := slices.Clone(seqs[1])
	last := len(changed) - 1
	changed[last] = (changed[last] + 1) % int32(f.Vocab)
	after := forward(t, e, [][]int32{changed}, false)
	requireClose(
		t, [][]float32{all.LogProbs[1][:last]}, [][]float32{after.LogProbs[0][:last]}, 1e-5,
		"log-probability before a change",
	)
}

func testKeep(t *testing.T, f TrainerFixture) {
	e := opened(t, f)
	seqs := sequences(f, 3, 20, 8)
	without, with := forward(t, e, seqs, false), forward(t, e, seqs, true)
	require.NotZero(t, with.Kept)
	require.Equal(t, without.LogProbs, with.LogProbs)
	require.Equal(t, without.Entropies, with.Entropies)
}

// testForwardTemperature checks that a temperature divides the logits: one of infinity would be uniform.
func testForwardTemperature(t *testing.T, f TrainerFixture) {
	e := opened(t, f)
	seqs := sequences(f, 4, 12)
	out, err := e.Forward(context.Background(), policy.ForwardRequest{
		Role: policy.RolePolicy, Sequences: seqs, Temperature: 1e6, Outputs: policy.OutLogProb | policy.OutEntropy,
	})
	require.NoError(t, err)
	for j := 1; j < len(seqs[0]); j++ {
		require.InDelta(t, -math.Log(float64(f.Vocab)), out.LogProbs[0][j], 1e-3)
		require.InDelta(t, math.Log(float64(f.Vocab)), out.Entropies[0][j], 1e-3)
	}
}
