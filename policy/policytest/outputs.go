package policytest

import (
	"context"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/policy"
)

func testForward(t *testing.T, f Fixture) {
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
func testForwardBatch(t *testing.T, f Fixture) {
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
	requireClose(t, [][]float32{all.LogProbs[1][:last]}, [][]float32{after.LogProbs[0][:last]}, 1e-5, "log-probability before a change")
}

func testKeep(t *testing.T, f Fixture) {
	e := opened(t, f)
	seqs := sequences(f, 3, 20, 8)
	without, with := forward(t, e, seqs, false), forward(t, e, seqs, true)
	require.NotZero(t, with.Kept)
	require.Equal(t, without.LogProbs, with.LogProbs)
	require.Equal(t, without.Entropies, with.Entropies)
}

// testTemperature checks that a temperature divides the logits: one of infinity would be uniform.
func testTemperature(t *testing.T, f Fixture) {
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
	g := generate(t, e, request(seqs, 6, 0.5))
	whole := slices.Concat(seqs[0], g.Tokens[0])
	out, err = e.Forward(context.Background(), policy.ForwardRequest{
		Role: policy.RolePolicy, Sequences: [][]int32{whole}, Temperature: 0.5, Outputs: policy.OutLogProb,
	})
	require.NoError(t, err)
	require.Nil(t, out.Entropies, "entropy was not asked for")
	requireClose(t, [][]float32{out.LogProbs[0][len(seqs[0]):]}, g.LogProbs, 1e-5, "tempered log-probability")
}

func testGenerateEqualsForward(t *testing.T, f Fixture) {
	e := opened(t, f)
	prefixes := sequences(f, 5, 1, 7, 30, 30, 66)
	g := generate(t, e, request(prefixes, 20, 1))
	var whole [][]int32
	for i, p := range prefixes {
		whole = append(whole, slices.Concat(p, g.Tokens[i]))
	}
	out := forward(t, e, whole, false)
	for i, p := range prefixes {
		requireClose(t, [][]float32{out.LogProbs[i][len(p):]}, g.LogProbs[i:i+1], 1e-5, "log-probability")
		requireClose(t, [][]float32{out.Entropies[i][len(p):]}, g.Entropies[i:i+1], 1e-5, "entropy")
	}
}

func testGenerateBatch(t *testing.T, f Fixture) {
	e := opened(t, f)
	prefixes := sequences(f, 6, 3, 9, 9, 25)
	prefixes = append(prefixes, prefixes[1], prefixes[1])
	req := request(prefixes, 12, 1)
	all := generate(t, e, req)
	require.NotEqual(t, all.Tokens[1], all.Tokens[4], "streams of equal prefixes differ")
	for i := range prefixes {
		one := policy.GenerateRequest{Role: policy.RolePolicy, Prefixes: prefixes[i : i+1], Streams: req.Streams[i : i+1], MaxTokens: []int{12}, Temperature: 1}
		alone := generate(t, e, one)
		require.Equal(t, all.Tokens[i], alone.Tokens[0], "row %d", i)
		require.Equal(t, all.Finish[i], alone.Finish[0])
		requireClose(t, alone.LogProbs, all.LogProbs[i:i+1], 1e-5, "log-probability")
	}
	slices.Reverse(req.Prefixes)
	slices.Reverse(req.Streams)
	reversed := generate(t, e, req)
	slices.Reverse(reversed.Tokens)
	require.Equal(t, all.Tokens, reversed.Tokens)
}

// testGreedy compares each choice at temperature 0 with every alternative.
func testGreedy(t *testing.T, f Fixture) {
	e := opened(t, f)
	prefix := sequences(f, 7, 10)[0]
	g := generate(t, e, request([][]int32{prefix}, 5, 0))
	for j, chosen := range g.Tokens[0] {
		before := slices.Concat(prefix, g.Tokens[0][:j])
		var tries [][]int32
		for v := range f.Vocab {
			tries = append(tries, append(slices.Clone(before), int32(v)))
		}
		out := forward(t, e, tries, false)
		best := out.LogProbs[chosen][len(before)]
		for v := range f.Vocab {
			require.LessOrEqual(t, float64(out.LogProbs[v][len(before)]), float64(best)+1e-5)
		}
		require.InDelta(t, best, g.LogProbs[0][j], 1e-5, "log-probabilities at temperature 0 are those of 1")
	}
	other := request([][]int32{prefix}, 5, 0)
	other.Streams[0] = 77
	require.Equal(t, g.Tokens, generate(t, e, other).Tokens, "no draw decides at temperature 0")
}

func testFinish(t *testing.T, f Fixture) {
	e := opened(t, f)
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
		require.Len(t, stopped.LogProbs[i], len(want))
		require.Len(t, stopped.Entropies[i], len(want))
	}
	require.Empty(t, generate(t, e, request(nil, 1, 1)).Tokens)
}

// testFrequencies draws many first tokens and compares their counts with the model's own probabilities.
func testFrequencies(t *testing.T, f Fixture) {
	const draws = 4096
	e := opened(t, f)
	prefix := sequences(f, 9, 6)[0]
	g := generate(t, e, request(slices.Repeat([][]int32{prefix}, draws), 1, 1))
	counts := make([]float64, f.Vocab)
	for _, r := range g.Tokens {
		counts[r[0]]++
	}
	var tries [][]int32
	for v := range f.Vocab {
		tries = append(tries, append(slices.Clone(prefix), int32(v)))
	}
	out := forward(t, e, tries, false)
	total := 0.0
	for v := range f.Vocab {
		p := math.Exp(float64(out.LogProbs[v][len(prefix)]))
		total += p
		// Five standard deviations of a binomial count, and a little for tiny p.
		require.InDelta(t, draws*p, counts[v], 5*math.Sqrt(draws*p*(1-p))+2, "token %d", v)
	}
	require.InDelta(t, 1, total, 1e-4, "probabilities over the vocabulary")
}
