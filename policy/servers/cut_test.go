package servers_test

import (
	"cmp"
	"context"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/cpu"
	"github.com/ropewalk/ropewalk/policy/servers"
)

// limits are the limits of sampling that the tests apply.
var limits = []policy.Truncation{{TopK: 3}, {TopP: 0.5}, {MinP: 0.95}, {TopK: 8, TopP: 0.7}, {TopK: 8, MinP: 0.3},
	{TopP: 0.7, MinP: 0.3}}

// A server's log-probabilities are those of what its limits of sampling leave, or it does not offer the limits and a
// recipe that samples with them is refused.
func TestCutDistributions(t *testing.T) {
	for _, c := range []struct {
		kind       string
		raw, uncut bool
		cuts       bool
	}{
		{kind: servers.KindRopewalk, cuts: true},
		{kind: servers.KindLlama, cuts: true},
		{kind: servers.KindVLLM, cuts: true},
		{kind: servers.KindVLLM, raw: true},
		{kind: servers.KindTensorRT, cuts: true},
		{kind: servers.KindTensorRT, raw: true},
		{kind: servers.KindTensorRT, uncut: true},
		{kind: servers.KindSGLang, uncut: true},
		{kind: servers.KindSGLang, raw: true},
		{kind: servers.KindSGLang, cuts: true}, // as a later version may be
	} {
		a := newFake(t, c.kind)
		a.raw, a.uncut = c.raw, c.uncut
		s := open(t, all(a)...)
		can := s.Capabilities()
		require.Equal(t, []bool{c.cuts, c.cuts, c.cuts}, []bool{can.TopK, can.TopP, can.MinP}, "%+v", c)
		dir := policyDir(t, 99) // the one that every fake has
		require.NoError(t, s.Load(t.Context(), policy.RolePolicy, dir, false))
		for _, limit := range limits {
			req := rows(1, 4)
			req.Truncation = limit
			if !c.cuts {
				_, err := s.Generate(t.Context(), req)
				require.ErrorIs(t, err, policy.ErrBadRequest, "%+v", c)
				require.ErrorContains(t, err, "with log-probabilities of what it leaves")
				continue
			}
			checkCut(t, s, dir, shape.Vocab, 1, limit, 24)
			checkCut(t, s, dir, shape.Vocab, 0.7, limit, 24)
		}
	}
}

// checkCut draws single tokens under a limit and compares each with what our own forward pass leaves.
func checkCut(t *testing.T, s *servers.Sampler, dir string, vocab int, temperature float64, limit policy.Truncation,
	draws int) {
	t.Helper()
	req := policy.GenerateRequest{Role: policy.RolePolicy, Temperature: temperature, Truncation: limit}
	prefix := []int32{5, 9, 2}
	for i := range draws {
		req.Prefixes, req.MaxTokens = append(req.Prefixes, prefix), append(req.MaxTokens, 1)
		req.Streams = append(req.Streams, uint64(i+1)*104729)
	}
	g, err := s.Generate(t.Context(), req)
	if kind := s.Facts()[0].Server; limit.MinP > 0 && limit.TopP > 0 && kind[:4] == "vllm" {
		require.ErrorIs(t, err, policy.ErrBadRequest)
		require.ErrorContains(t, err, "vLLM applies min-p before top-p")
		return
	}
	require.NoError(t, err)
	left := leaves(t, dir, vocab, prefix, temperature, limit)
	require.Less(t, len(left), vocab)
	for i, ids := range g.Tokens {
		want, ok := left[ids[0]]
		require.True(t, ok, "%+v at temperature %v leaves token %d", limit, temperature, ids[0])
		require.InDelta(t, want, g.LogProbs[i][0], 1e-3, "%+v, token %d", limit, ids[0])
	}
}

// leaves are the log-probabilities of what a limit leaves of our own forward pass after a prefix, as policy.Truncation
// says.
func leaves(t *testing.T, dir string, vocab int, prefix []int32, temperature float64,
	limit policy.Truncation) map[int32]float64 {
	t.Helper()
	e, err := cpu.Open(cpu.Options{Threads: 1})
	require.NoError(t, err)
	defer e.Close()
	require.NoError(t, e.Load(t.Context(), policy.RolePolicy, dir, false))
	req := policy.ForwardRequest{Role: policy.RolePolicy, Temperature: temperature, Outputs: policy.OutLogProb}
	for id := range vocab {
		req.Sequences = append(req.Sequences, append(slices.Clone(prefix), int32(id)))
	}
	out, err := e.Forward(context.Background(), req)
	require.NoError(t, err)
	type token struct {
		id int32
		p  float64
	}
	var all []token
	for id := range vocab {
		all = append(all, token{int32(id), math.Exp(float64(out.LogProbs[id][len(prefix)]))})
	}
	slices.SortFunc(all, func(a, b token) int { return cmp.Or(cmp.Compare(b.p, a.p), cmp.Compare(a.id, b.id)) })
	if limit.TopK > 0 {
		all = all[:limit.TopK]
	}
	total := func() (sum float64) {
		for _, x := range all {
			sum += x.p
		}
		return sum
	}
	if limit.TopP > 0 {
		whole, sum := total(), 0.0
		for n, x := range all {
			if sum += x.p; sum >= limit.TopP*whole {
				all = all[:n+1]
				break
			}
		}
	}
	most := all[0].p
	all = slices.DeleteFunc(all, func(x token) bool { return x.p < limit.MinP*most })
	left, whole := map[int32]float64{}, total()
	for _, x := range all {
		left[x.id] = math.Log(x.p / whole)
	}
	return left
}
