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
	req := pass(policy.RolePolicy, [][]int32{whole}, policy.OutLogProb)
	req.Temperature = 0.5
	out := outputsOf(t, e, req)
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

// testCriticGenerates: a critic does not generate, although it is loaded.
func testCriticGenerates(t *testing.T, f Fixture) {
	e := opened(t, f)
	require.NoError(t, e.Load(context.Background(), policy.RoleCritic, f.Dir, false))
	req := request(sequences(f, 37, 6), 3, 1)
	req.Role = policy.RoleCritic
	_, err := e.Generate(context.Background(), req)
	require.ErrorIs(t, err, policy.ErrBadRequest)
}

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
	requireClose(t, [][]float32{all.LogProbs[1][:last]}, [][]float32{after.LogProbs[0][:last]}, 1e-5,
		"log-probability before a change")
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
	req := pass(policy.RolePolicy, seqs, policy.OutLogProb|policy.OutEntropy)
	req.Temperature = 1e6
	out := outputsOf(t, e, req)
	for j := 1; j < len(seqs[0]); j++ {
		require.InDelta(t, -math.Log(float64(f.Vocab)), out.LogProbs[0][j], 1e-3)
		require.InDelta(t, math.Log(float64(f.Vocab)), out.Entropies[0][j], 1e-3)
	}
}
