package policytest

import (
	"context"
	"math"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/policy"
)

// samplerTests are the tests of every sampler. Where a capability is missing, a test skips what needs it.
var samplerTests = []named[policy.Sampler]{
	{"capabilities", testCapabilities},
	{"publish", testPublish},
	{"responses", testResponses},
	{"same request same bits", testRepeated},
	{"generation ignores batch mates", testGenerateBatch},
	{"temperature zero", testCold},
	{"truncation", testTruncation},
	{"likeliest tokens", testLikeliest},
	{"stop and budget", testFinish},
	{"log-probabilities are frequencies", testLogProbs},
	{"reference", testSamplerReference},
	{"typed errors", testSamplerErrors},
	{"context", testSamplerContext},
	{"close", testSamplerClose},
}

func testCapabilities(t *testing.T, f SamplerFixture) {
	e := f.Open(t)
	t.Cleanup(func() { e.Close() })
	before := e.Capabilities()
	require.NoError(t, before.Validate())
	require.NoError(t, e.Load(context.Background(), policy.RolePolicy, f.Dir, false))
	generate(t, e, request(sequences(f, 40, 4), 3, 1))
	require.Equal(t, before, e.Capabilities(), "capabilities do not change")
	require.NotEmpty(t, e.Describe().Device)
}

// testPublish: a loaded policy is known by its digest, and a Load that fails leaves the policy before.
func testPublish(t *testing.T, f SamplerFixture) {
	ctx, req := context.Background(), request(sequences(f, 41, 6), 5, 1)
	e := f.Open(t)
	t.Cleanup(func() { e.Close() })
	require.Equal(t, policy.State{}, stateOf(t, e, policy.RolePolicy), "an empty role")
	_, err := e.Generate(ctx, req)
	require.ErrorIs(t, err, policy.ErrNotLoaded)
	require.NoError(t, e.Load(ctx, policy.RolePolicy, f.Dir, false))
	want, err := f.Digest(f.Dir)
	require.NoError(t, err)
	s := stateOf(t, e, policy.RolePolicy)
	require.Equal(t, want, s.Digest)
	require.Error(t, e.Load(ctx, policy.RolePolicy, filepath.Join(t.TempDir(), "nothing"), false))
	require.Equal(t, s, stateOf(t, e, policy.RolePolicy))
	generate(t, e, req)
}

// testResponses checks the shape of what is generated, and the bounds of its numbers.
func testResponses(t *testing.T, f SamplerFixture) {
	e := opened(t, f)
	can := e.Capabilities()
	prefixes := sequences(f, 42, 1, 9, 30, 4)
	g := generate(t, e, request(prefixes, 12, 1))
	require.Len(t, g.Tokens, len(prefixes))
	require.Len(t, g.Finish, len(prefixes))
	for i, ids := range g.Tokens {
		require.Len(t, ids, 12)
		require.Equal(t, policy.FinishLength, g.Finish[i])
		for _, id := range ids {
			require.GreaterOrEqual(t, id, int32(0))
			require.Less(t, int(id), f.Vocab)
		}
	}
	if !can.LogProbs {
		require.Nil(t, g.LogProbs)
	} else {
		requireWithin(t, g.Tokens, g.LogProbs, -math.MaxFloat32, 0, "log-probability")
	}
	if can.Entropy == policy.EntropyNone {
		require.Nil(t, g.Entropies)
	} else {
		requireWithin(t, g.Tokens, g.Entropies, 0, math.Log(float64(f.Vocab))+1e-5, "entropy")
	}
	require.Empty(t, generate(t, e, request(nil, 1, 1)).Tokens)
}

// requireWithin requires a number between lo and hi for each token.
func requireWithin(t *testing.T, tokens [][]int32, values [][]float32, lo, hi float64, what string) {
	t.Helper()
	require.Len(t, values, len(tokens), what)
	for i := range tokens {
		require.Len(t, values[i], len(tokens[i]), what)
		for _, v := range values[i] {
			require.True(t, float64(v) >= lo && float64(v) <= hi, "%s %v of row %d", what, v, i)
		}
	}
}

func testRepeated(t *testing.T, f SamplerFixture) {
	e := opened(t, f)
	if !e.Capabilities().RowSeeds {
		t.Skip("the sampler states no seeds for rows")
	}
	req := request(sequences(f, 43, 5, 17, 40), 10, 1)
	want := generate(t, e, req)
	require.Equal(t, want, generate(t, e, req), "the same sampler")
	require.Equal(t, want, generate(t, opened(t, f), req), "another one")
}

func testGenerateBatch(t *testing.T, f SamplerFixture) {
	e := opened(t, f)
	can := e.Capabilities()
	if !can.RowSeeds {
		t.Skip("the sampler states no seeds for rows")
	}
	prefixes := sequences(f, 6, 3, 9, 9, 25)
	prefixes = append(prefixes, prefixes[1], prefixes[1])
	req := request(prefixes, 12, 1)
	all := generate(t, e, req)
	require.NotEqual(t, all.Tokens[1], all.Tokens[4], "streams of equal prefixes differ")
	for i := range prefixes {
		one := policy.GenerateRequest{
			Role: policy.RolePolicy, Prefixes: prefixes[i : i+1], Streams: req.Streams[i : i+1], MaxTokens: []int{12},
			Temperature: 1,
		}
		alone := generate(t, e, one)
		require.Equal(t, all.Tokens[i], alone.Tokens[0], "row %d", i)
		require.Equal(t, all.Finish[i], alone.Finish[0])
		if can.BatchInvariant {
			require.Equal(t, alone.LogProbs, all.LogProbs[i:i+1])
		} else if can.LogProbs {
			requireClose(t, alone.LogProbs, all.LogProbs[i:i+1], 1e-5, "log-probability")
		}
	}
	slices.Reverse(req.Prefixes)
	slices.Reverse(req.Streams)
	reversed := generate(t, e, req)
	slices.Reverse(reversed.Tokens)
	require.Equal(t, all.Tokens, reversed.Tokens)
}

// testSamplerReference: a sampler that states it holds a second model, which generates next to the policy.
func testSamplerReference(t *testing.T, f SamplerFixture) {
	e := opened(t, f)
	if !e.Capabilities().Reference {
		t.Skip("the sampler states no second model")
	}
	req := request(sequences(f, 44, 5, 9), 8, 1)
	req.Role = policy.RoleReference
	_, err := e.Generate(t.Context(), req)
	require.ErrorIs(t, err, policy.ErrNotLoaded)
	require.NoError(t, e.Load(t.Context(), policy.RoleReference, f.Dir, false))
	got := generate(t, e, req)
	req.Role = policy.RolePolicy
	require.Equal(t, generate(t, e, req), got, "the same weights under both roles")
}

func testFinish(t *testing.T, f SamplerFixture) {
	e := opened(t, f)
	if !e.Capabilities().RowSeeds {
		t.Skip("the sampler states no seeds for rows, so that no two responses can be compared")
	}
	prefixes := sequences(f, 8, 4, 4, 4, 4)
	req := request(prefixes, 9, 1)
	req.MaxTokens = []int{1, 9, 3, 9}
	free := generate(t, e, req)
	for i, n := range req.MaxTokens {
		require.Len(t, free.Tokens[i], n)
		require.Equal(t, policy.FinishLength, free.Finish[i])
	}
	req.Stop = []int32{free.Tokens[1][4], free.Tokens[3][0]}
	stopped := generate(t, e, req)
	for i := range prefixes {
		end := slices.IndexFunc(free.Tokens[i], func(v int32) bool { return slices.Contains(req.Stop, v) })
		want, reason := free.Tokens[i], policy.FinishLength
		if end >= 0 {
			want, reason = want[:end+1], policy.FinishStop
		}
		require.Equal(t, want, stopped.Tokens[i], "row %d ends with its stop token", i)
		require.Equal(t, reason, stopped.Finish[i])
	}
	requireAligned(t, e.Capabilities(), stopped)
}

// requireAligned requires that a generation has each of the stated outputs for each token.
func requireAligned(t *testing.T, can policy.Capabilities, g policy.Generated) {
	t.Helper()
	for i, ids := range g.Tokens {
		if can.LogProbs {
			require.Len(t, g.LogProbs[i], len(ids))
		}
		if can.Entropy != policy.EntropyNone {
			require.Len(t, g.Entropies[i], len(ids))
		}
	}
}

// testCold: at temperature 0 no draw decides, and log-probabilities are those of temperature 1.
func testCold(t *testing.T, f SamplerFixture) {
	e := opened(t, f)
	can := e.Capabilities()
	req := request(sequences(f, 44, 10), 5, 0)
	if !can.Temperature && !can.Greedy {
		_, err := e.Generate(context.Background(), req)
		require.ErrorIs(t, err, policy.ErrBadRequest)
		return
	}
	g := generate(t, e, req)
	other := req
	other.Streams = []uint64{77}
	require.Equal(t, g.Tokens, generate(t, e, other).Tokens, "no draw decides at temperature 0")
	if !can.LogProbs {
		return
	}
	// No token that is drawn at temperature 1 is likelier than the one that temperature 0 takes.
	drawn := generate(t, e, request(slices.Repeat(req.Prefixes, 64), 1, 1))
	for i, ids := range drawn.Tokens {
		require.LessOrEqual(t, drawn.LogProbs[i][0], g.LogProbs[0][0]+1e-5)
		if ids[0] == g.Tokens[0][0] {
			require.InDelta(t, g.LogProbs[0][0], drawn.LogProbs[i][0], 1e-5)
		}
	}
}

// testLogProbs draws many first tokens. The log-probability of each token that came must fit its frequency.
func testLogProbs(t *testing.T, f SamplerFixture) {
	const draws = 4096
	e := opened(t, f)
	if !e.Capabilities().LogProbs {
		t.Skip("the sampler states no log-probabilities")
	}
	g := generate(t, e, request(slices.Repeat(sequences(f, 45, 6), draws), 1, 1))
	counts, probability := make([]float64, f.Vocab), map[int32]float64{}
	for i, ids := range g.Tokens {
		counts[ids[0]]++
		p := math.Exp(float64(g.LogProbs[i][0]))
		if known, ok := probability[ids[0]]; ok {
			require.InDelta(t, known, p, 1e-5, "token %d", ids[0])
		}
		probability[ids[0]] = p
	}
	for v, p := range probability {
		// Five standard deviations of a binomial count, and a little for tiny p.
		require.InDelta(t, draws*p, counts[v], 5*math.Sqrt(draws*p*(1-p))+2, "token %d", v)
	}
}

func testSamplerErrors(t *testing.T, f SamplerFixture) {
	e, ctx := opened(t, f), context.Background()
	bad := func(change func(*policy.GenerateRequest), want error) {
		req := request(sequences(f, 20, 4), 3, 1)
		change(&req)
		_, err := e.Generate(ctx, req)
		require.ErrorIs(t, err, want)
	}
	bad(func(r *policy.GenerateRequest) { r.Role = policy.RoleCritic }, policy.ErrNotLoaded)
	bad(func(r *policy.GenerateRequest) { r.MaxTokens[0] = 0 }, policy.ErrBadRequest)
	bad(func(r *policy.GenerateRequest) { r.MaxTokens[0] = f.Positions }, policy.ErrBadRequest)
	bad(func(r *policy.GenerateRequest) { r.Streams = nil }, policy.ErrBadRequest)
	bad(func(r *policy.GenerateRequest) { r.Temperature = -1 }, policy.ErrBadRequest)
	bad(func(r *policy.GenerateRequest) { r.Stop = []int32{-1} }, policy.ErrBadRequest)
	bad(func(r *policy.GenerateRequest) { r.Prefixes[0] = nil }, policy.ErrBadRequest)
	bad(func(r *policy.GenerateRequest) { r.Prefixes[0][0] = int32(f.Vocab) }, policy.ErrBadRequest)
	generate(t, e, request(sequences(f, 20, 4), 3, 1))
}

func testSamplerContext(t *testing.T, f SamplerFixture) {
	e := opened(t, f)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	require.ErrorIs(t, e.Load(ctx, policy.RolePolicy, f.Dir, false), context.Canceled)
	_, err := e.Generate(ctx, request(sequences(f, 21, 8), 3, 1))
	require.ErrorIs(t, err, context.Canceled)
	generate(t, e, request(sequences(f, 21, 8), 3, 1))
}

func testSamplerClose(t *testing.T, f SamplerFixture) {
	e := opened(t, f)
	require.NoError(t, e.Close())
	_, err := e.Generate(context.Background(), request(sequences(f, 23, 3), 1, 1))
	require.ErrorIs(t, err, policy.ErrLost)
	require.ErrorIs(t, e.Load(context.Background(), policy.RolePolicy, f.Dir, false), policy.ErrLost)
}
