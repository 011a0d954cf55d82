// Package policytest holds the conformance suites of package policy: what any sampler, any trainer and any engine must
// do, whatever it runs on.
//
// Glossary. A *fixture* is a checkpoint folder of a small policy without an optimiser's state, and what opens the thing
// under test. *Close* numbers agree up to the rounding that a different batch or kernel may cause.
package policytest

import (
	"context"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/rl/optimizer"
)

// Of says what a suite works with: a way to open what it tests, and a model.
type Of[E model] struct {
	// Open opens a sampler, trainer or engine that the suite closes; all that it opens are alike.
	Open func(t testing.TB) E
	// Dir is a checkpoint folder; Vocab the size of its vocabulary, at least 8; Positions its longest sequence.
	Dir              string
	Vocab, Positions int
	// Digest names the content of a checkpoint folder.
	Digest func(dir string) (string, error)
	// Only names the tests to run; nil = all.
	Only []string
}

// model is what the suites need of everything that they open.
type model interface {
	Load(ctx context.Context, role policy.Role, dir string, optimizer bool) error
	State(ctx context.Context, role policy.Role) (policy.State, error)
	Close() error
}

// SamplerFixture is what Sampler works with.
type SamplerFixture = Of[policy.Sampler]

// TrainerFixture is what Trainer works with.
type TrainerFixture = Of[policy.Trainer]

// Fixture is what Run works with.
type Fixture = Of[policy.Engine]

// as returns the fixture for one half of an engine.
func as[To, From model](f Of[From], half func(From) To) Of[To] {
	return Of[To]{Open: func(t testing.TB) To { return half(f.Open(t)) }, Dir: f.Dir, Vocab: f.Vocab,
		Positions: f.Positions, Digest: f.Digest, Only: f.Only}
}

// named is one test of a suite.
type named[E model] struct {
	name string
	test func(t *testing.T, f Of[E])
}

// Run runs the sampler's and the trainer's suite on an engine, and the tests of what the two halves have in common.
func Run(t *testing.T, f Fixture) {
	known := slices.Concat(names(samplerTests), names(trainerTests), names(engineTests))
	requireKnown(t, f.Only, known)
	t.Run("sampler", func(t *testing.T) {
		run(t, as(f, func(e policy.Engine) policy.Sampler { return e }), samplerTests)
	})
	t.Run("trainer", func(t *testing.T) {
		run(t, as(f, func(e policy.Engine) policy.Trainer { return e }), trainerTests)
	})
	run(t, f, engineTests)
}

// Sampler runs the suite of samplers. What the sampler does not state in its Capabilities is not tested.
func Sampler(t *testing.T, f SamplerFixture) {
	requireKnown(t, f.Only, names(samplerTests))
	run(t, f, samplerTests)
}

// Trainer runs the suite of trainers.
func Trainer(t *testing.T, f TrainerFixture) {
	requireKnown(t, f.Only, names(trainerTests))
	run(t, f, trainerTests)
}

func names[E model](tests []named[E]) (out []string) {
	for _, c := range tests {
		out = append(out, c.name)
	}
	return out
}

func requireKnown(t *testing.T, only, known []string) {
	t.Helper()
	for _, name := range only {
		require.Contains(t, known, name, "no such test")
	}
}

func run[E model](t *testing.T, f Of[E], tests []named[E]) {
	t.Helper()
	for _, c := range tests {
		if f.Only == nil || slices.Contains(f.Only, c.name) {
			t.Run(c.name, func(t *testing.T) { c.test(t, f) })
		}
	}
}

// adam are the options of every Step of the suites.
var adam = policy.StepOptions{LR: 1e-2,
	Rule: optimizer.AdamW{Beta1: 0.9, Beta2: 0.95, Epsilon: 1e-8, WeightDecay: 0.1}, ClipNorm: 1}

// opened opens what is tested, with the fixture resident as policy.
func opened[E model](t *testing.T, f Of[E]) E {
	t.Helper()
	e := f.Open(t)
	t.Cleanup(func() { e.Close() })
	require.NoError(t, e.Load(context.Background(), policy.RolePolicy, f.Dir, true))
	return e
}

func sequences[E model](f Of[E], seed uint64, lengths ...int) [][]int32 {
	r := rand.New(rand.NewPCG(seed, 1))
	out := make([][]int32, len(lengths))
	for i, n := range lengths {
		for range min(n, f.Positions) {
			out[i] = append(out[i], int32(r.IntN(f.Vocab)))
		}
	}
	return out
}

// weighted are cotangents of the given weight for every token.
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

func stateOf(t *testing.T, e model, role policy.Role) policy.State {
	t.Helper()
	s, err := e.State(context.Background(), role)
	require.NoError(t, err)
	return s
}

// pass asks for outputs at temperature 1.
func pass(role policy.Role, seqs [][]int32, outputs policy.Outputs) policy.ForwardRequest {
	return policy.ForwardRequest{Role: role, Sequences: seqs, Temperature: 1, Outputs: outputs}
}

func outputsOf(t *testing.T, e policy.Trainer, req policy.ForwardRequest) policy.TokenOutputs {
	t.Helper()
	out, err := e.Forward(context.Background(), req)
	require.NoError(t, err)
	return out
}

func forward(t *testing.T, e policy.Trainer, seqs [][]int32, keep bool) policy.TokenOutputs {
	t.Helper()
	req := pass(policy.RolePolicy, seqs, policy.OutLogProb|policy.OutEntropy)
	req.Keep = keep
	return outputsOf(t, e, req)
}

// train is one update that raises the log-probability of seqs, and the entropy a little.
func train(t *testing.T, e policy.Trainer, seqs [][]int32) policy.StepStats {
	t.Helper()
	out := forward(t, e, seqs, true)
	c := policy.Cotangents{LogProbs: weighted(seqs, -1), Entropies: weighted(seqs, -0.1)}
	require.NoError(t, e.Backward(context.Background(), policy.RolePolicy, out.Kept, c))
	s, err := e.Step(context.Background(), policy.RolePolicy, adam)
	require.NoError(t, err)
	return s
}

func saved(t *testing.T, e policy.Trainer) (dir, digest string) {
	return savedAs(t, e, policy.RolePolicy)
}

func savedAs(t *testing.T, e policy.Trainer, role policy.Role) (dir, digest string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "checkpoint")
	digest, err := e.Save(context.Background(), role, dir)
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

func generate(t *testing.T, e policy.Sampler, req policy.GenerateRequest) policy.Generated {
	t.Helper()
	g, err := e.Generate(context.Background(), req)
	require.NoError(t, err)
	return g
}

// requireClose compares ragged rows.
func requireClose(t *testing.T, want, got [][]float32, tolerance float64, what string) {
	t.Helper()
	require.Empty(t, cmp.Diff(want, got, cmpopts.EquateApprox(0, tolerance), cmpopts.EquateEmpty()), what)
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
