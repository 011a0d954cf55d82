package cpu

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/checkpoint"
	"github.com/ropewalk/ropewalk/rl/optimizer"
)

// TestShare: shares are runs that follow each other, cut at multiples of the unit.
func TestShare(t *testing.T) {
	for _, n := range []int{0, 1, 15, 16, 100, 256} {
		for parts := 1; parts < 5; parts++ {
			at := 0
			for part := range parts {
				s := rangeOfPart(n, part, parts, 16)
				require.Equal(t, at, s.lo, "part %d of %d of %d", part, parts, n)
				require.GreaterOrEqual(t, s.hi, s.lo)
				if s.hi < n {
					require.Zero(t, s.hi%16)
				}
				at = s.hi
			}
			require.Equal(t, n, at)
		}
	}
}

// TestGenerationByColumns: a model with layers large enough generates the same however many parts share the work,
// by columns while few rows live and by rows while many do, and agrees with Forward.
func TestGenerationByColumns(t *testing.T) {
	shape := checkpoint.Shape{
		Vocab: 101, Hidden: 128, Layers: 2, Heads: 4, KVHeads: 2, HeadDim: 32, FFN: 328, Positions: 64,
		RopeTheta: 10000, NormEps: 1e-6, Pad: -1, EOS: []int32{3},
	}
	for _, a := range []checkpoint.Architecture{checkpoint.Qwen3, checkpoint.Qwen2, checkpoint.Llama} {
		t.Run(string(a), func(t *testing.T) {
			s := shape
			s.Architecture = a
			generationByColumns(t, s)
		})
	}
}

func generationByColumns(t *testing.T, shape checkpoint.Shape) {
	dir := filepath.Join(t.TempDir(), "c")
	c := loaded[float32](t, shape, blasGonum, 1).checkpoint()
	for _, w := range c.Weights {
		scale(w.Data, 0.2) // near the size of weights that are drawn for a new model
	}
	_, err := checkpoint.Write(dir, c)
	require.NoError(t, err)
	req := policy.GenerateRequest{Role: policy.RolePolicy, Temperature: 1}
	for i := range 3*columnRows + 9 {
		req.Prefixes = append(req.Prefixes, randomSequences(uint64(i/2), shape.Vocab, 3+i%7)[0])
		req.Streams = append(req.Streams, uint64(i))
		req.MaxTokens = append(req.MaxTokens, 2+i%11)
	}
	for _, blas := range libraries(t) {
		var first policy.Generated
		for _, threads := range []int{1, 3} {
			e, err := Open(Options{Threads: threads, BLAS: blas})
			require.NoError(t, err)
			require.NoError(t, e.Load(t.Context(), policy.RolePolicy, dir, false))
			res, err := e.Generate(t.Context(), req)
			require.NoError(t, err)
			var whole [][]int32
			for i, p := range req.Prefixes {
				whole = append(whole, slices.Concat(p, res.Tokens[i]))
			}
			out, err := e.Forward(
				t.Context(),
				policy.ForwardRequest{
					Role: policy.RolePolicy, Sequences: whole, Temperature: 1, Outputs: policy.OutLogProb,
				},
			)
			require.NoError(t, err)
			for i, p := range req.Prefixes {
				require.InDeltaSlice(
					t, out.LogProbs[i][len(p):], res.LogProbs[i], 1e-5, "%s, %d threads, row %d", blas, threads, i,
				)
			}
			if threads == 1 {
				first = res
			}
			require.Equal(t, first.Tokens, res.Tokens, "%s, %d threads", blas, threads)
			if blas == blasOwn {
				require.Equal(t, first.LogProbs, res.LogProbs, "%d threads: own kernels round alike", threads)
			}
			require.NoError(t, e.Close())
		}
	}
}

// TestPackedWeightsFollowSteps: after a step generation uses the new weights, in the memory of the old.
func TestPackedWeightsFollowSteps(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, checkpoint.Init(dir, tiny, 11, map[string][]byte{"tokenizer.json": []byte("{}")}))
	e, err := Open(Options{Threads: 2})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	require.NoError(t, e.Load(t.Context(), policy.RolePolicy, dir, false))
	prefix := []int32{1, 2, 3}
	req := policy.GenerateRequest{
		Role: policy.RolePolicy, Prefixes: [][]int32{prefix}, Streams: []uint64{1}, MaxTokens: []int{6}, Temperature: 1,
	}
	for range 3 {
		res, err := e.Generate(t.Context(), req)
		require.NoError(t, err)
		whole := [][]int32{slices.Concat(prefix, res.Tokens[0])}
		out, err := e.Forward(
			t.Context(),
			policy.ForwardRequest{
				Role: policy.RolePolicy, Sequences: whole, Temperature: 1, Outputs: policy.OutLogProb, Keep: true,
			},
		)
		require.NoError(t, err)
		require.InDeltaSlice(t, out.LogProbs[0][len(prefix):], res.LogProbs[0], 1e-5)
		require.NoError(
			t, e.Backward(t.Context(), policy.RolePolicy, out.Kept, policy.Cotangents{LogProbs: randomLike(1, whole)}),
		)
		_, err = e.Step(
			t.Context(), policy.RolePolicy, policy.StepOptions{LR: 1e-2,
				Rule: optimizer.AdamW{Beta1: 0.9, Beta2: 0.95, Epsilon: 1e-8}},
		)
		require.NoError(t, err)
	}
}
