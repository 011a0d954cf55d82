package torch

import (
	"cmp"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/checkpoint"
	"github.com/ropewalk/ropewalk/policy/cpu"
)

// exactModel is a model whose logits are the same numbers in every engine: its layers add nothing, its embeddings are
// ±1, so that the norm divides by 1, and its head holds quarters, whose sums are exact in any order. Many logits are
// equal. logits holds those after each token.
func exactModel(t testing.TB) (dir string, logits [][]float64) {
	t.Helper()
	s := tiny
	s.Untied, s.NormEps = true, 1e-12
	c, err := checkpoint.Fresh(s, 5)
	require.NoError(t, err)
	r := rand.New(rand.NewPCG(5, 1))
	var embedding, head []float32
	for _, w := range c.Weights {
		value := func() float32 { return 0 }
		switch {
		case strings.HasSuffix(w.Name, "embed_tokens.weight"):
			embedding, value = w.Data, func() float32 { return float32(2*r.IntN(2) - 1) }
		case strings.HasSuffix(w.Name, "lm_head.weight"):
			head, value = w.Data, func() float32 { return float32(r.IntN(5)-2) / 4 }
		case !strings.HasSuffix(w.Name, "o_proj.weight") && !strings.HasSuffix(w.Name, "down_proj.weight"):
			continue
		}
		for i := range w.Data {
			w.Data[i] = value()
		}
	}
	for token := range s.Vocab {
		row := make([]float64, s.Vocab)
		for j := range row {
			for k := range s.Hidden {
				row[j] += float64(embedding[token*s.Hidden+k]) * float64(head[j*s.Hidden+k])
			}
		}
		logits = append(logits, row)
	}
	dir = filepath.Join(t.TempDir(), "exact")
	_, err = checkpoint.Write(dir, c)
	require.NoError(t, err)
	return dir, logits
}

// limits are all ways of cutting a distribution, alone and together.
var limits = []policy.Truncation{
	{}, {TopK: 1}, {TopK: 4}, {TopK: 100}, {TopP: 0.3}, {TopP: 0.9}, {MinP: 0.05}, {MinP: 0.4}, {MinP: 1},
	{TopK: 9, TopP: 0.8}, {TopK: 9, MinP: 0.2}, {TopP: 0.9, MinP: 0.1}, {TopK: 12, TopP: 0.9, MinP: 0.15},
}

// drawn is the token that a uniform number chooses: a plain reading of policy.Truncation and of the inversion in the
// order of ids.
func drawn(logits []float64, temperature float64, limit policy.Truncation, u float64) (token int32, logp float64) {
	ids, weight := make([]int32, len(logits)), make([]float64, len(logits))
	top := slices.Max(logits)
	for i, z := range logits {
		ids[i], weight[i] = int32(i), math.Exp((z-top)/temperature)
	}
	total := func() (sum float64) {
		for _, id := range ids {
			sum += weight[id]
		}
		return sum
	}
	slices.SortFunc(ids, func(a, b int32) int { return cmp.Or(cmp.Compare(weight[b], weight[a]), cmp.Compare(a, b)) })
	if limit.TopK > 0 {
		ids = ids[:min(limit.TopK, len(ids))]
	}
	if limit.TopP > 0 {
		all, sum := total(), 0.0
		for n, id := range ids {
			if sum += weight[id]; sum >= limit.TopP*all {
				ids = ids[:n+1]
				break
			}
		}
	}
	ids = slices.DeleteFunc(ids, func(id int32) bool { return weight[id] < limit.MinP })
	slices.Sort(ids)
	all, sum := total(), 0.0
	for _, id := range ids {
		if token, sum = id, sum+weight[id]; sum > u*all {
			break
		}
	}
	return token, math.Log(weight[token] / all)
}

// splitMix is draw t of a stream of the engine in Python: SplitMix64.
func splitMix(stream uint64) func(t int) float64 {
	return func(t int) float64 {
		x := stream + uint64(t+1)*0x9E3779B97F4A7C15
		x = (x ^ x>>30) * 0xBF58476D1CE4E5B9
		x = (x ^ x>>27) * 0x94D049BB133111EB
		x ^= x >> 31
		return float64(x>>11) / (1 << 53)
	}
}

// requireExact requires the tokens that follow from the logits and the random streams alone.
func requireExact(t *testing.T, e policy.Engine, stream func(seed uint64) func(t int) float64) {
	t.Helper()
	dir, logits := exactModel(t)
	require.NoError(t, e.Load(t.Context(), policy.RolePolicy, dir, false))
	const rows, budget, stop = 48, 20, 3
	req := policy.GenerateRequest{Role: policy.RolePolicy, Stop: []int32{stop}}
	r := rand.New(rand.NewPCG(6, 1))
	for range rows {
		req.Prefixes = append(req.Prefixes, []int32{int32(r.IntN(tiny.Vocab)), int32(r.IntN(tiny.Vocab))})
		req.Streams, req.MaxTokens = append(req.Streams, r.Uint64()), append(req.MaxTokens, budget)
	}
	for _, temperature := range []float64{1, 0.5, 2} {
		for _, limit := range limits {
			req.Temperature, req.Truncation = temperature, limit
			got, err := e.Generate(t.Context(), req)
			require.NoError(t, err)
			for i, prefix := range req.Prefixes {
				last, u := prefix[len(prefix)-1], stream(req.Streams[i])
				for n, token := range got.Tokens[i] {
					want, logp := drawn(logits[last], temperature, limit, u(n))
					require.Equal(t, want, token, "%+v at temperature %v, row %d, token %d", limit, temperature, i, n)
					require.InDelta(t, logp, got.LogProbs[i][n], 1e-5)
					last = token
				}
				require.True(t, last == stop || len(got.Tokens[i]) == budget)
			}
		}
	}
}

// Both engines draw exactly the tokens that follow from the logits and their random streams, whatever the limits are.
// The streams differ: Go's PCG in one, SplitMix64 in the other.
func TestRealTokensOfTheLogits(t *testing.T) {
	torch := fromPool(t, 1)
	defer torch.Close()
	requireExact(t, torch, splitMix)
}

func TestTokensOfTheLogits(t *testing.T) {
	ours, err := cpu.Open(cpu.Options{Threads: 2})
	require.NoError(t, err)
	defer ours.Close()
	requireExact(t, ours, func(seed uint64) func(int) float64 {
		r := rand.New(rand.NewPCG(seed, 0x9E3779B97F4A7C15)) // the increment of policy/cpu
		return func(int) float64 { return r.Float64() }
	})
}
