package cpu

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/checkpoint"
)

// groups returns rows of groups that share their beginnings, in a mixed order, with the number of shared tokens.
func groups(vocab int) (rows [][]int32, shared []int) {
	for g, lengths := range [][]int{{5, 9, 2}, {1, 70, 3, 3}, {4}, {80, 2}} {
		n := []int{6, 70, 5, 1}[g]
		stem := randomSequences(uint64(g)+50, vocab, n)[0]
		for i, more := range lengths {
			rows = append(rows, append(slices.Clone(stem), randomSequences(uint64(100*g+i), vocab, more)[0]...))
			shared = append(shared, n)
		}
	}
	rng := rand.New(rand.NewPCG(4, 4))
	rng.Shuffle(len(rows), func(i, j int) {
		rows[i], rows[j] = rows[j], rows[i]
		shared[i], shared[j] = shared[j], shared[i]
	})
	return rows, shared
}

// TestSharedTokensChangeRoundingAlone compares outputs and gradients with those of whole rows, in float64.
func TestSharedTokensChangeRoundingAlone(t *testing.T) {
	for name, shape := range map[string]checkpoint.Shape{"qwen3": tiny, "llama": withArchitecture(checkpoint.Llama),
		"qwen2": withArchitecture(checkpoint.Qwen2)} {
		for _, threads := range []int{1, 2, 3} {
			rows, shared := groups(shape.Vocab)
			co := policy.Cotangents{LogProbs: randomLike(1, rows), Entropies: randomLike(2, rows)}
			for i, n := range shared {
				clear(co.LogProbs[i][:n+1])
				clear(co.Entropies[i][:n+1])
				co.LogProbs[i][n] = 0.5 // of the first token that is not shared
			}
			run := func(shared []int) (policy.TokenOutputs, []float64, int) {
				r := loaded[float64](t, shape, blasGonum, threads)
				req := policy.ForwardRequest{Sequences: rows, Shared: shared, Temperature: 0.8, Keep: true,
					Outputs: policy.OutLogProb | policy.OutEntropy}
				to := newOutputs(req)
				pass, err := r.forward(context.Background(), req, &to)
				require.NoError(t, err)
				tokens := 0
				for _, part := range pass.parts {
					for _, k := range part {
						tokens += k.c.len()
					}
				}
				require.NoError(t, r.backward(context.Background(), pass, co))
				grad, _, err := r.gradient()
				require.NoError(t, err)
				return to, grad, tokens
			}
			want, wantGrad, all := run(nil)
			got, gotGrad, fewer := run(shared)
			require.Less(t, fewer, all-200, "nothing is shared")
			for i, n := range shared {
				for j := n; j < len(rows[i]); j++ {
					require.InDelta(t, want.LogProbs[i][j], got.LogProbs[i][j], 1e-5, "%s row %d token %d", name, i, j)
					require.InDelta(t, want.Entropies[i][j], got.Entropies[i][j], 1e-5)
				}
			}
			for i := range wantGrad {
				require.InDelta(t, wantGrad[i], gotGrad[i], 1e-9*max(1, math.Abs(wantGrad[i])), "%s gradient %d", name,
					i)
			}
		}
	}
}

func withArchitecture(a checkpoint.Architecture) checkpoint.Shape {
	s := tiny
	s.Architecture = a
	return s
}

func TestBadSharedTokens(t *testing.T) {
	rows := [][]int32{{1, 2, 3}, {1, 2}}
	for _, shared := range [][]int{{1}, {0, 2}, {-1, 0}, {3, 1}} {
		err := policy.ForwardRequest{Sequences: rows, Shared: shared}.CheckShared()
		require.ErrorIs(t, err, policy.ErrBadRequest)
	}
	require.NoError(t, policy.ForwardRequest{Sequences: rows, Shared: []int{2, 0}}.CheckShared())
}

// Passes of other sizes do not make the spare memory grow beyond that of the largest pass.
func TestSpareMemoryIsBounded(t *testing.T) {
	r := loaded[float64](t, tiny, blasGonum, 2)
	for _, n := range []int{100, 9, 60, 3, 30, 90, 5, 2, 50} {
		rows := randomSequences(uint64(n), tiny.Vocab, n, n, n)
		req := policy.ForwardRequest{Sequences: rows, Temperature: 1, Keep: true, Outputs: policy.OutLogProb}
		to := newOutputs(req)
		pass, err := r.forward(context.Background(), req, &to)
		require.NoError(t, err)
		r.giveBack(pass)
		total := 0
		for _, s := range r.spare {
			total += len(s)
		}
		require.LessOrEqual(t, total, r.largest)
		require.LessOrEqual(t, r.largest, 2*r.model.actsSize(300, true))
	}
}
