package policytest

import (
	"context"
	"math"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/rl/optimizer"
)

// trainerTests are the tests of every trainer.
var trainerTests = []named[policy.Trainer]{
	{"load and save", testLoadSave},
	{"resume equals uninterrupted", testResume},
	{"same inputs same bits", testDeterminism},
	{"forward shapes", testForward},
	{"forward ignores batch mates", testForwardBatch},
	{"forward temperature", testForwardTemperature},
	{"keep changes nothing", testKeep},
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
	{"critic next to policy and reference", testCriticWithPolicy},
	{"critic non-finite gradient", testCriticNonFinite},
	{"critic typed errors", testCriticErrors},
	{"close", testClose},
}

func testLoadSave(t *testing.T, f TrainerFixture) {
	e, ctx := opened(t, f), context.Background()
	want, err := f.Digest(f.Dir)
	require.NoError(t, err)
	s := stateOf(t, e, policy.RolePolicy)
	require.Equal(t, want, s.Digest)
	require.Zero(t, s.Step)
	require.Positive(t, s.Params)
	dir, digest := saved(t, e)
	require.Equal(t, want, digest, "saving what was loaded")
	train(t, e, sequences(f, 11, 12, 5))
	s = stateOf(t, e, policy.RolePolicy)
	require.Empty(t, s.Digest, "a step changes the model")
	require.EqualValues(t, 1, s.Step)
	dir2, digest2 := saved(t, e)
	require.NotEqual(t, digest, digest2)
	onDisk, err := f.Digest(dir2)
	require.NoError(t, err)
	require.Equal(t, onDisk, digest2)
	require.Equal(t, digest2, stateOf(t, e, policy.RolePolicy).Digest)
	_, err = e.Save(ctx, policy.RolePolicy, dir)
	require.Error(t, err, "a folder that holds something is not written over")
}

// testResume: load with optimiser ∘ save is the identity for everything that comes after.
func testResume(t *testing.T, f TrainerFixture) {
	e := opened(t, f)
	a, b := sequences(f, 12, 12, 5), sequences(f, 13, 8, 21)
	train(t, e, a)
	dir, _ := saved(t, e)
	stats := train(t, e, b)
	_, want := saved(t, e)

	other := f.Open(t)
	defer other.Close()
	require.NoError(t, other.Load(context.Background(), policy.RolePolicy, dir, true))
	require.Equal(t, stats, train(t, other, b))
	_, got := saved(t, other)
	require.Equal(t, want, got, "save, load, step equals an uninterrupted run")

	require.NoError(t, other.Load(context.Background(), policy.RolePolicy, dir, false))
	require.Zero(t, stateOf(t, other, policy.RolePolicy).Step, "without the optimiser's state steps count from zero")
}

func testDeterminism(t *testing.T, f TrainerFixture) {
	seqs := sequences(f, 14, 33, 5, 12, 61, 2)
	var digests []string
	var outs []policy.TokenOutputs
	for range 2 {
		e := opened(t, f)
		for range 3 {
			train(t, e, seqs)
		}
		_, d := saved(t, e)
		digests = append(digests, d)
		outs = append(outs, forward(t, e, seqs, false))
	}
	require.Equal(t, digests[0], digests[1])
	require.Equal(t, outs[0], outs[1])
}

// testAccumulate: two passes' gradients add up to one pass's over both.
func testAccumulate(t *testing.T, f TrainerFixture) {
	ctx := context.Background()
	seqs := sequences(f, 15, 14, 9, 40)
	whole := opened(t, f)
	one := train(t, whole, seqs)
	split := opened(t, f)
	// Both passes are kept before either goes back.
	first, second := forward(t, split, seqs[:1], true), forward(t, split, seqs[1:], true)
	for _, p := range []struct {
		kept policy.Kept
		seqs [][]int32
	}{{second.Kept, seqs[1:]}, {first.Kept, seqs[:1]}} {
		c := policy.Cotangents{LogProbs: weighted(p.seqs, -1), Entropies: weighted(p.seqs, -0.1)}
		require.NoError(t, split.Backward(ctx, policy.RolePolicy, p.kept, c))
	}
	two, err := split.Step(ctx, policy.RolePolicy, adam)
	require.NoError(t, err)
	require.InEpsilon(t, one.GradNorm, two.GradNorm, 1e-4)
	requireClose(t, forward(t, whole, seqs, false).LogProbs, forward(t, split, seqs, false).LogProbs, 2e-3,
		"log-probability after the step")
}

// testDirection: following the gradient raises what it is the gradient of, by about lr·|gradient|².
func testDirection(t *testing.T, f TrainerFixture) {
	e := opened(t, f)
	seqs := sequences(f, 16, 16, 16)
	before := sum(forward(t, e, seqs, false).LogProbs)
	for range 5 {
		train(t, e, seqs)
	}
	require.Greater(t, sum(forward(t, e, seqs, false).LogProbs), before)
	require.EqualValues(t, 5, stateOf(t, e, policy.RolePolicy).Step)
}

func testClip(t *testing.T, f TrainerFixture) {
	ctx, seqs := context.Background(), sequences(f, 17, 16, 4)
	norms := map[float64]policy.StepStats{}
	for _, clip := range []float64{0, 1e-3, 1e9} {
		e := opened(t, f)
		out := forward(t, e, seqs, true)
		c := policy.Cotangents{LogProbs: weighted(seqs, -1)}
		require.NoError(t, e.Backward(ctx, policy.RolePolicy, out.Kept, c))
		opts := adam
		opts.ClipNorm = clip
		s, err := e.Step(ctx, policy.RolePolicy, opts)
		require.NoError(t, err)
		norms[clip] = s
	}
	require.True(t, norms[1e-3].Clipped)
	require.False(t, norms[0].Clipped)
	require.False(t, norms[1e9].Clipped)
	require.Equal(t, norms[0].GradNorm, norms[1e-3].GradNorm, "the norm is the one before clipping")
	require.Greater(t, norms[0].GradNorm, 1e-3)
}

func testDiscard(t *testing.T, f TrainerFixture) {
	e, ctx := opened(t, f), context.Background()
	seqs := sequences(f, 18, 16, 4)
	out, used := forward(t, e, seqs, true), forward(t, e, seqs, true)
	require.NoError(t, e.Backward(ctx, policy.RolePolicy, used.Kept, policy.Cotangents{LogProbs: weighted(seqs, 3)}))
	require.NoError(t, e.Discard(ctx, policy.RolePolicy))
	err := e.Backward(ctx, policy.RolePolicy, out.Kept, policy.Cotangents{LogProbs: weighted(seqs, 1)})
	require.ErrorIs(t, err, policy.ErrNotKept)
	fresh := opened(t, f)
	require.Equal(t, train(t, fresh, seqs), train(t, e, seqs), "no gradient is left over")
}

// refusesToStep requires that cotangents which are not finite are told at the step, with a parameter's
// name, and drops them.
func refusesToStep(t *testing.T, e policy.Trainer, role policy.Role, kept policy.Kept, c policy.Cotangents) {
	t.Helper()
	ctx := context.Background()
	require.NoError(t, e.Backward(ctx, role, kept, c))
	_, err := e.Step(ctx, role, adam)
	var nf *policy.NonFiniteError
	require.ErrorAs(t, err, &nf)
	require.Contains(t, nf.Name, ".weight", "the error names a parameter")
	require.NoError(t, e.Discard(ctx, role))
}

func testNonFinite(t *testing.T, f TrainerFixture) {
	e := opened(t, f)
	seqs := sequences(f, 19, 8)
	_, before := saved(t, e)
	for _, v := range []float64{math.NaN(), math.Inf(1)} {
		kept := forward(t, e, seqs, true).Kept
		refusesToStep(t, e, policy.RolePolicy, kept, policy.Cotangents{LogProbs: weighted(seqs, float32(v))})
	}
	_, after := saved(t, e)
	require.Equal(t, before, after, "a refused step changes nothing")
	fresh := opened(t, f)
	require.Equal(t, train(t, fresh, seqs), train(t, e, seqs))
}

func testErrors(t *testing.T, f TrainerFixture) {
	e, ctx := opened(t, f), context.Background()
	seqs := sequences(f, 20, 4)
	badForward := func(change func(*policy.ForwardRequest), want error) {
		req := pass(policy.RolePolicy, seqs, policy.OutLogProb)
		change(&req)
		_, err := e.Forward(ctx, req)
		require.ErrorIs(t, err, want)
	}
	badForward(func(r *policy.ForwardRequest) { r.Role = policy.RoleReference }, policy.ErrNotLoaded)
	badForward(func(r *policy.ForwardRequest) { r.Temperature = 0 }, policy.ErrBadRequest)
	badForward(func(r *policy.ForwardRequest) { r.Outputs = 0 }, policy.ErrBadRequest)
	badForward(func(r *policy.ForwardRequest) { r.Outputs = policy.OutValue }, policy.ErrBadRequest)
	badForward(func(r *policy.ForwardRequest) { r.Sequences = [][]int32{{}} }, policy.ErrBadRequest)
	badForward(func(r *policy.ForwardRequest) { r.Sequences = [][]int32{{int32(f.Vocab)}} }, policy.ErrBadRequest)
	badForward(func(r *policy.ForwardRequest) { r.Sequences = [][]int32{{-1}} }, policy.ErrBadRequest)
	long := [][]int32{make([]int32, f.Positions+1)}
	badForward(func(r *policy.ForwardRequest) { r.Sequences = long }, policy.ErrBadRequest)

	out := forward(t, e, seqs, true)
	back := func(kept policy.Kept, c policy.Cotangents) error {
		return e.Backward(ctx, policy.RolePolicy, kept, c)
	}
	require.ErrorIs(t, back(out.Kept+1000, policy.Cotangents{}), policy.ErrNotKept)
	require.ErrorIs(t, back(out.Kept, policy.Cotangents{LogProbs: weighted(seqs[:0], 1)}), policy.ErrBadRequest)
	require.ErrorIs(t, back(out.Kept, policy.Cotangents{Values: weighted(seqs, 1)}), policy.ErrBadRequest)
	good := policy.Cotangents{LogProbs: weighted(seqs, 1)}
	require.NoError(t, back(out.Kept, good), "a refused request keeps what was kept")
	require.ErrorIs(t, back(out.Kept, good), policy.ErrNotKept, "backward runs once")
	_, err := e.Step(ctx, policy.RolePolicy, policy.StepOptions{LR: math.NaN(), Rule: optimizer.AdamW{}})
	require.ErrorIs(t, err, policy.ErrBadRequest)
	require.Error(t, e.Load(ctx, policy.RolePolicy, filepath.Join(t.TempDir(), "nothing"), true))
	forward(t, e, seqs, false)
}

func testContext(t *testing.T, f TrainerFixture) {
	e := opened(t, f)
	seqs := sequences(f, 21, 8)
	out := forward(t, e, seqs, true)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	require.ErrorIs(t, e.Load(ctx, policy.RolePolicy, f.Dir, true), context.Canceled)
	_, err := e.Save(ctx, policy.RolePolicy, filepath.Join(t.TempDir(), "checkpoint"))
	require.ErrorIs(t, err, context.Canceled)
	_, err = e.Forward(ctx, pass(policy.RolePolicy, seqs, policy.OutLogProb))
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, e.Backward(ctx, policy.RolePolicy, out.Kept, policy.Cotangents{}), context.Canceled)
	_, err = e.Step(ctx, policy.RolePolicy, adam)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, e.Discard(ctx, policy.RolePolicy), context.Canceled)
	forward(t, e, seqs, false)
}

func testRoles(t *testing.T, f TrainerFixture) {
	e, ctx := opened(t, f), context.Background()
	require.NoError(t, e.Load(ctx, policy.RoleReference, f.Dir, false))
	seqs := sequences(f, 22, 10)
	before := forward(t, e, seqs, false)
	train(t, e, seqs)
	ref := outputsOf(t, e, pass(policy.RoleReference, seqs, policy.OutLogProb))
	require.Equal(t, before.LogProbs, ref.LogProbs, "the reference does not move with the policy")
	require.NotEqual(t, before.LogProbs, forward(t, e, seqs, false).LogProbs)
	require.Equal(t, policy.State{}, stateOf(t, e, policy.RoleCritic), "an empty role")
	require.NotEmpty(t, e.Describe().Device)
}

func testClose(t *testing.T, f TrainerFixture) {
	e := opened(t, f)
	require.NoError(t, e.Close())
	_, err := e.Forward(context.Background(), pass(policy.RolePolicy, sequences(f, 23, 3), policy.OutLogProb))
	require.ErrorIs(t, err, policy.ErrLost)
}
