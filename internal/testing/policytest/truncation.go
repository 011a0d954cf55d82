package policytest

import (
	"cmp"
	"context"
	"maps"
	"math"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/policy"
)

// testTruncation compares what is drawn with each limit with the distribution over all tokens, which single draws
// without a limit show.
func testTruncation(t *testing.T, f SamplerFixture) {
	e := opened(t, f)
	can := e.Capabilities()
	prefix := sequences(f, 45, 6)
	probability := sync.OnceValue(func() map[int32]float64 { return frequencies(t, f, e) })
	for _, c := range []struct {
		limit policy.Truncation
		can   bool
	}{
		{policy.Truncation{TopK: 3}, can.TopK},
		{policy.Truncation{TopP: 0.5}, can.TopP},
		{policy.Truncation{MinP: 0.5}, can.MinP},
		{policy.Truncation{TopK: 8, TopP: 0.7, MinP: 0.3}, can.TopK && can.TopP && can.MinP},
	} {
		req := request(prefix, 1, 1)
		req.Truncation = c.limit
		if !c.can {
			_, err := e.Generate(context.Background(), req)
			require.ErrorIs(t, err, policy.ErrBadRequest, "%+v", c.limit)
			continue
		}
		if !can.LogProbs {
			continue
		}
		left := remaining(c.limit, probability())
		req = request(slices.Repeat(prefix, 256), 1, 1)
		req.Truncation = c.limit
		g := generate(t, e, req)
		for i, ids := range g.Tokens {
			want, ok := left[ids[0]]
			require.True(t, ok, "%+v leaves token %d", c.limit, ids[0])
			require.InDelta(t, math.Log(want), g.LogProbs[i][0], 1e-4, "%+v, token %d", c.limit, ids[0])
		}
		cold := request(prefix, 4, 0)
		free := generate(t, e, cold)
		cold.Truncation = c.limit
		require.Equal(t, free, generate(t, e, cold), "temperature 0 is not truncated")
	}
	for _, limit := range []policy.Truncation{
		{TopK: -1}, {TopP: -0.1}, {TopP: 1.1}, {TopP: math.NaN()}, {MinP: -0.1}, {MinP: 1.1}, {MinP: math.NaN()},
	} {
		req := request(prefix, 1, 1)
		req.Truncation = limit
		_, err := e.Generate(context.Background(), req)
		require.ErrorIs(t, err, policy.ErrBadRequest, "%+v", limit)
	}
}

// frequencies returns the probability of every token that 8,192 draws meet. The likeliest are among them.
func frequencies(t *testing.T, f SamplerFixture, e policy.Sampler) map[int32]float64 {
	t.Helper()
	g := generate(t, e, request(slices.Repeat(sequences(f, 45, 6), 8192), 1, 1))
	out := map[int32]float64{}
	for i, ids := range g.Tokens {
		out[ids[0]] = math.Exp(float64(g.LogProbs[i][0]))
	}
	return out
}

// remaining applies the limit to a distribution as policy.Truncation says.
func remaining(limit policy.Truncation, probability map[int32]float64) map[int32]float64 {
	ids := slices.SortedFunc(maps.Keys(probability), func(a, b int32) int {
		return cmp.Or(cmp.Compare(probability[b], probability[a]), cmp.Compare(a, b))
	})
	all := 1.0
	if limit.TopK > 0 {
		ids = ids[:min(limit.TopK, len(ids))]
		all = sumOf(ids, probability)
	}
	if limit.TopP > 0 {
		var sum float64
		for n, id := range ids {
			if sum += probability[id]; sum >= limit.TopP*all {
				ids = ids[:n+1]
				break
			}
		}
	}
	top := probability[ids[0]]
	ids = slices.DeleteFunc(ids, func(id int32) bool { return probability[id] < limit.MinP*top })
	all = sumOf(ids, probability)
	out := map[int32]float64{}
	for _, id := range ids {
		out[id] = probability[id] / all
	}
	return out
}

func sumOf(ids []int32, probability map[int32]float64) float64 {
	var sum float64
	for _, id := range ids {
		sum += probability[id]
	}
	return sum
}

// testLikeliest: the likeliest tokens of a position belong to the distribution that its token was drawn from. Asking
// for them changes nothing else.
func testLikeliest(t *testing.T, f SamplerFixture) {
	const positions = 4
	e := opened(t, f)
	can := e.Capabilities()
	req := request(sequences(f, 61, 5, 17, 40), 8, 1)
	if !can.Temperature && can.Greedy {
		req.Temperature = 0
	}
	for _, bad := range [][2]int{{can.TopLogProbs + 1, 1}, {-1, 1}} {
		req.Top, req.TopTokens = bad[0], bad[1]
		_, err := e.Generate(t.Context(), req)
		require.ErrorIs(t, err, policy.ErrBadRequest, "%d likeliest tokens", req.Top)
	}
	if can.TopLogProbs == 0 {
		return
	}
	limits := []policy.Truncation{{}}
	if can.TopK {
		limits = append(limits, policy.Truncation{TopK: 3})
	}
	for _, limit := range limits {
		req.Top, req.TopTokens, req.Truncation = 0, 0, limit
		plain := generate(t, e, req)
		require.Nil(t, plain.Top)
		req.Top, req.TopTokens = min(10, can.TopLogProbs), positions
		got := generate(t, e, req)
		if can.RowSeeds {
			require.Equal(t, plain.Tokens, got.Tokens)
			require.Equal(t, plain.LogProbs, got.LogProbs)
		}
		require.Len(t, got.Top, len(got.Tokens))
		for i, ids := range got.Tokens {
			require.Len(t, got.Top[i], min(len(ids), positions))
			for k, top := range got.Top[i] {
				requireLikeliest(t, top, req.Top, limit, got.LogProbs[i][k])
			}
		}
	}
}

// requireLikeliest checks the likeliest tokens of one position, from which a token of the given log-probability was
// drawn.
func requireLikeliest(t *testing.T, top []float32, most int, limit policy.Truncation, drawn float32) {
	t.Helper()
	const rounding = 1e-3
	require.NotEmpty(t, top)
	require.LessOrEqual(t, len(top), most)
	if limit.TopK > 0 {
		require.LessOrEqual(t, len(top), limit.TopK)
	}
	descending := func(a, b float32) int { return cmp.Compare(b, a) }
	require.True(t, slices.IsSortedFunc(top, descending), "the likeliest first: %v", top)
	mass, nearest := 0.0, math.Inf(1)
	for _, v := range top {
		require.LessOrEqual(t, v, float32(rounding))
		mass += math.Exp(float64(v))
		nearest = min(nearest, math.Abs(float64(v-drawn)))
	}
	require.LessOrEqual(t, mass, 1+rounding)
	require.LessOrEqual(t, drawn, top[0]+rounding)
	if len(top) < most || drawn > top[len(top)-1]+rounding {
		require.LessOrEqual(t, nearest, rounding, "the token that was drawn is one of them")
	}
}
