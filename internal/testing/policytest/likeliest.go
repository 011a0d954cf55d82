package policytest

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/policy"
)

// testLikeliest: the likeliest tokens of a position are those of the distribution that its token was drawn from. Asking
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
	require.True(t, slices.IsSortedFunc(top, func(a, b float32) int {
		switch {
		case a > b:
			return -1
		case a < b:
			return 1
		}
		return 0
	}), "the likeliest first: %v", top)
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
