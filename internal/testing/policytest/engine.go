package policytest

import (
	"context"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/policy"
)

// engineTests are the tests of what the two halves of an engine have in common.
var engineTests = []named[policy.Engine]{
	{"generation equals forward", testGenerateEqualsForward},
	{"generation after training", testTrainedGeneration},
	{"temperature", testTemperature},
	{"temperature zero takes the likeliest", testGreedy},
	{"sampling frequencies", testFrequencies},
	{"critic does not generate", testCriticGenerates},
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

// testTrainedGeneration: what an engine generates after its own steps is what it generates after loading them.
func testTrainedGeneration(t *testing.T, f Fixture) {
	e, prefixes := opened(t, f), sequences(f, 24, 3, 9)
	before := generate(t, e, request(prefixes, 10, 1))
	for range 3 {
		train(t, e, sequences(f, 25, 16, 8))
	}
	got := generate(t, e, request(prefixes, 10, 1))
	require.NotEqual(t, before.LogProbs, got.LogProbs)
	dir, _ := saved(t, e)
	other := opened(t, f)
	require.NoError(t, other.Load(context.Background(), policy.RolePolicy, dir, false))
	require.Equal(t, got, generate(t, other, request(prefixes, 10, 1)))
}

// testTemperature compares the tempered log-probabilities of Generate with those of Forward.
func testTemperature(t *testing.T, f Fixture) {
	e := opened(t, f)
	seqs := sequences(f, 4, 12)
	g := generate(t, e, request(seqs, 6, 0.5))
	whole := slices.Concat(seqs[0], g.Tokens[0])
	out, err := e.Forward(context.Background(), policy.ForwardRequest{
		Role: policy.RolePolicy, Sequences: [][]int32{whole}, Temperature: 0.5, Outputs: policy.OutLogProb,
	})
	require.NoError(t, err)
	require.Nil(t, out.Entropies, "entropy was not asked for")
	requireClose(t, [][]float32{out.LogProbs[0][len(seqs[0]):]}, g.LogProbs, 1e-5, "tempered log-probability")
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

// testCriticGenerates: a critic does not generate, although it is loaded.
func testCriticGenerates(t *testing.T, f Fixture) {
	e := opened(t, f)
	require.NoError(t, e.Load(context.Background(), policy.RoleCritic, f.Dir, false))
	req := request(sequences(f, 37, 6), 3, 1)
	req.Role = policy.RoleCritic
	_, err := e.Generate(context.Background(), req)
	require.ErrorIs(t, err, policy.ErrBadRequest)
}
