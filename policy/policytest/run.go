// Package policytest is the conformance suite of policy.Engine: what any engine must do, whatever it runs on.
//
// Glossary. A *fixture* is a checkpoint folder of a small policy without an optimiser's state. *Close* numbers
// agree up to the rounding that a different batch or kernel may cause.
package policytest

import (
	"context"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/policy"
)

// Fixture says what the suite works with.
type Fixture struct {
	// Open opens an engine that the suite closes; engines it opens are all alike.
	Open func(t testing.TB) policy.Engine
	// Dir is a checkpoint folder; Vocab the size of its vocabulary, at least 8; Positions its longest sequence.
	Dir              string
	Vocab, Positions int
	// Digest names the content of a checkpoint folder.
	Digest func(dir string) (string, error)
	// Only names the tests to run; all of them without.
	Only []string
}

// adam are the options of every Step of the suite.
var adam = policy.StepOptions{LR: 1e-2, Beta1: 0.9, Beta2: 0.95, Epsilon: 1e-8, WeightDecay: 0.1, ClipNorm: 1}

// Run runs the suite.
func Run(t *testing.T, f Fixture) {
	left := slices.Clone(f.Only)
	for _, c := range []struct {
		name string
		test func(t *testing.T, f Fixture)
	}{
		{"load and save", testLoadSave},
		{"resume equals uninterrupted", testResume},
		{"same inputs same bits", testDeterminism},
		{"forward shapes", testForward},
		{"forward ignores batch mates", testForwardBatch},
		{"keep changes nothing", testKeep},
		{"generation equals forward", testGenerateEqualsForward},
		{"generation ignores batch mates", testGenerateBatch},
		{"temperature", testTemperature},
		{"temperature zero", testGreedy},
		{"stop and budget", testFinish},
		{"sampling frequencies", testFrequencies},
		{"gradients add up", testAccumulate},
		{"gradient direction", testDirection},
		{"clipping", testClip},
		{"discard", testDiscard},
		{"non-finite gradient", testNonFinite},
		{"typed errors", testErrors},
		{"context", testContext},
		{"roles", testRoles},
		{"critic begins at zero", testCriticFresh},
		{"critic learns", testCriticLearns},
		{"critic load and save", testCriticSave},
		{"critic values ignore batch mates", testCriticBatch},
		{"critic beside policy and reference", testCriticBeside},
		{"critic non-finite gradient", testCriticNonFinite},
		{"critic typed errors", testCriticErrors},
		{"close", testClose},
	} {
		if f.Only != nil && !slices.Contains(f.Only, c.name) {
			continue
		}
		left = slices.DeleteFunc(left, func(name string) bool { return name == c.name })
		t.Run(c.name, func(t *testing.T) { c.test(t, f) })
	}
	require.Empty(t, left, "no such tests")
}

// opened is an engine with the fixture resident.
func opened(t *testing.T, f Fixture) policy.Engine {
	t.Helper()
	e := f.Open(t)
	t.Cleanup(func() { e.Close() })
	require.NoError(t, e.Load(context.Background(), policy.RolePolicy, f.Dir, true))
	return e
}

func sequences(f Fixture, seed uint64, lengths ...int) [][]int32 {
	r := rand.New(rand.NewPCG(seed, 1))
	out := make([][]int32, len(lengths))
	for i, n := range lengths {
		for range min(n, f.Positions) {
			out[i] = append(out[i], int32(r.IntN(f.Vocab)))
		}
	}
	return out
}

// ones are cotangents of 1 for every token, or of the given weight.
func weighted(seqs [][]int32, weight float32) [][]float32 {
	out := make([][]float32, len(seqs))
	for i, s := range seqs {
		out[i] = make([]float32, len(s))
		for t := range s {
			out[i][t] = weight
		}
	}
	return out
}

func forward(t *testing.T, e policy.Engine, seqs [][]int32, keep bool) policy.TokenOutputs {
	t.Helper()
	out, err := e.Forward(context.Background(), policy.ForwardRequest{
		Role: policy.RolePolicy, Sequences: seqs, Temperature: 1,
		Outputs: policy.OutLogProb | policy.OutEntropy, Keep: keep,
	})
	require.NoError(t, err)
	return out
}

// train is one update that raises the log-probability of seqs, and the entropy a little.
func train(t *testing.T, e policy.Engine, seqs [][]int32) policy.StepStats {
	t.Helper()
	out := forward(t, e, seqs, true)
	c := policy.Cotangents{LogProbs: weighted(seqs, -1), Entropies: weighted(seqs, -0.1)}
	require.NoError(t, e.Backward(context.Background(), policy.RolePolicy, out.Kept, c))
	s, err := e.Step(context.Background(), policy.RolePolicy, adam)
	require.NoError(t, err)
	return s
}

func saved(t *testing.T, e policy.Engine) (dir, digest string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "checkpoint")
	digest, err := e.Save(context.Background(), policy.RolePolicy, dir)
	require.NoError(t, err)
	return dir, digest
}

func request(prefixes [][]int32, budget int, temperature float64) policy.GenerateRequest {
	req := policy.GenerateRequest{Role: policy.RolePolicy, Prefixes: prefixes, Temperature: temperature}
	for i := range prefixes {
		req.Streams = append(req.Streams, 1000+uint64(i))
		req.MaxTokens = append(req.MaxTokens, budget)
	}
	return req
}

func generate(t *testing.T, e policy.Engine, req policy.GenerateRequest) policy.Generated {
	t.Helper()
	g, err := e.Generate(context.Background(), req)
	require.NoError(t, err)
	return g
}

// requireClose compares ragged rows.
func requireClose(t *testing.T, want, got [][]float32, tolerance float64, what string) {
	t.Helper()
	require.Len(t, got, len(want), what)
	for i := range want {
		require.Len(t, got[i], len(want[i]), "%s of row %d", what, i)
		for j := range want[i] {
			d := math.Abs(float64(want[i][j]) - float64(got[i][j]))
			require.LessOrEqualf(t, d, tolerance, "%s of row %d token %d: %v, want %v", what, i, j, got[i][j], want[i][j])
		}
	}
}

func sum(rows [][]float32) float64 {
	var s float64
	for _, r := range rows {
		for _, v := range r {
			s += float64(v)
		}
	}
	return s
}
