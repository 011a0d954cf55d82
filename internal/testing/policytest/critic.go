package policytest

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/policy"
)

// criticised is a trainer with the fixture resident as policy and, made a critic, as critic.
func criticised(t *testing.T, f TrainerFixture) policy.Trainer {
	t.Helper()
	e := opened(t, f)
	require.NoError(t, e.Load(context.Background(), policy.RoleCritic, f.Dir, true))
	return e
}

func values(t *testing.T, e policy.Trainer, seqs [][]int32, keep bool) policy.TokenOutputs {
	t.Helper()
	req := pass(policy.RoleCritic, seqs, policy.OutValue)
	req.Keep = keep
	return outputsOf(t, e, req)
}

// target is what the suite's critic learns: the value of a state depends on its last token.
func target(seq []int32, t int) float32 { return float32(seq[t-1]%3) - 0.5 }

// regression is the mean of (V − target)² over the predicted tokens, and its cotangents.
func regression(seqs [][]int32, out policy.TokenOutputs) (loss float64, c policy.Cotangents) {
	n := 0
	for _, s := range seqs {
		n += len(s) - 1
	}
	c.Values = weighted(seqs, 0)
	for i, s := range seqs {
		for t := 1; t < len(s); t++ {
			d := float64(out.Values[i][t] - target(s, t))
			loss += d * d / float64(n)
			c.Values[i][t] = float32(2 * d / float64(n))
		}
	}
	return loss, c
}

// learn takes the critic one step towards the targets and returns the loss before it.
func learn(t *testing.T, e policy.Trainer, seqs [][]int32) (float64, policy.StepStats) {
	t.Helper()
	out := values(t, e, seqs, true)
	loss, c := regression(seqs, out)
	require.NoError(t, e.Backward(context.Background(), policy.RoleCritic, out.Kept, c))
	s, err := e.Step(context.Background(), policy.RoleCritic, adam)
	require.NoError(t, err)
	return loss, s
}

// taught is a critic that has moved away from zero, head and layers below.
func taught(t *testing.T, f TrainerFixture) policy.Trainer {
	t.Helper()
	e := criticised(t, f)
	for range 3 {
		learn(t, e, sequences(f, 30, 12, 5, 31))
	}
	return e
}

func testCriticFresh(t *testing.T, f TrainerFixture) {
	e, ctx := criticised(t, f), context.Background()
	seqs := sequences(f, 31, 1, 7, 20)
	out := values(t, e, seqs, false)
	require.Nil(t, out.LogProbs)
	require.Nil(t, out.Entropies)
	require.Equal(t, weighted(seqs, 0), out.Values, "a fresh critic knows nothing")
	s, of := stateOf(t, e, policy.RoleCritic), stateOf(t, e, policy.RolePolicy)
	require.Empty(t, s.Digest, "a fresh critic is no checkpoint yet")
	require.Greater(t, s.Params, of.Params)
	dir, digest := savedAs(t, e, policy.RoleCritic)
	require.NotEqual(t, of.Digest, digest, "the digest covers the head")
	require.Equal(t, digest, stateOf(t, e, policy.RoleCritic).Digest)
	require.Equal(t, modelFile(t, f.Dir), modelFile(t, dir), "the model is the policy's")

	// A trained policy's moments are of another loss.
	train(t, e, seqs)
	dir, _ = saved(t, e)
	require.NoError(t, e.Load(ctx, policy.RoleCritic, dir, true))
	require.Zero(t, stateOf(t, e, policy.RoleCritic).Step)
}

func modelFile(t *testing.T, dir string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "model.safetensors"))
	require.NoError(t, err)
	return b
}

func testCriticLearns(t *testing.T, f TrainerFixture) {
	e := criticised(t, f)
	seqs := sequences(f, 32, 12, 5, 31)
	first, _ := learn(t, e, seqs)
	last := first
	for range 60 {
		last, _ = learn(t, e, seqs)
	}
	require.Less(t, last, first/5, "mean squared error")
	dir, _ := savedAs(t, e, policy.RoleCritic)
	require.NotEqual(t, modelFile(t, f.Dir), modelFile(t, dir), "the layers below the head learn too")
}

// testCriticSave: load with optimiser ∘ save is the identity for everything that comes after.
func testCriticSave(t *testing.T, f TrainerFixture) {
	ctx, seqs := context.Background(), sequences(f, 33, 9, 22)
	e := taught(t, f)
	dir, digest := savedAs(t, e, policy.RoleCritic)
	onDisk, err := f.Digest(dir)
	require.NoError(t, err)
	require.Equal(t, onDisk, digest)

	other := f.Open(t)
	defer other.Close()
	require.NoError(t, other.Load(ctx, policy.RoleCritic, dir, true))
	s := stateOf(t, other, policy.RoleCritic)
	require.Equal(t, digest, s.Digest)
	require.EqualValues(t, 3, s.Step)
	require.Equal(t, values(t, e, seqs, false), values(t, other, seqs, false))
	_, again := savedAs(t, other, policy.RoleCritic)
	require.Equal(t, digest, again, "saving what was loaded")
	learn(t, e, seqs)
	learn(t, other, seqs)
	_, want := savedAs(t, e, policy.RoleCritic)
	_, got := savedAs(t, other, policy.RoleCritic)
	require.Equal(t, want, got, "save, load, step equals an uninterrupted run")
}

// testCriticBatch: a sequence's values are its own, the value of a token knows only the tokens before it, and
// keeping activations changes nothing.
func testCriticBatch(t *testing.T, f TrainerFixture) {
	e := taught(t, f)
	seqs := sequences(f, 34, 9, 30, 1, 70, 17)
	all := values(t, e, seqs, false)
	kept := values(t, e, seqs, true)
	require.NotZero(t, kept.Kept)
	require.Equal(t, all.Values, kept.Values)
	for i, s := range seqs {
		require.Zero(t, all.Values[i][0], "nothing comes before the first token")
		requireClose(t, values(t, e, [][]int32{s}, false).Values, all.Values[i:i+1], 1e-5, "value")
	}
	at := 10
	changed := slices.Clone(seqs[1])
	changed[at] = (changed[at] + 1) % int32(f.Vocab)
	after := values(t, e, [][]int32{changed}, false).Values[0]
	requireClose(t, [][]float32{all.Values[1][:at+1]}, [][]float32{after[:at+1]}, 1e-5, "value up to the changed token")
	require.Greater(t, math.Abs(float64(after[at+1]-all.Values[1][at+1])), 1e-4, "the next value has seen it")

	hot := pass(policy.RoleCritic, seqs, policy.OutValue)
	hot.Temperature = 7
	require.Equal(t, all.Values, outputsOf(t, e, hot).Values, "values know no temperature")
}

// testCriticWithPolicy: policy, reference and critic in one trainer are what each is alone.
func testCriticWithPolicy(t *testing.T, f TrainerFixture) {
	ctx, seqs := context.Background(), sequences(f, 35, 16, 4)
	all, alone, critic := criticised(t, f), opened(t, f), criticised(t, f)
	require.NoError(t, all.Load(ctx, policy.RoleReference, f.Dir, false))
	reference := pass(policy.RoleReference, seqs, policy.OutLogProb)
	before := outputsOf(t, all, reference)
	for range 2 {
		require.Equal(t, train(t, alone, seqs), train(t, all, seqs))
		_, want := learn(t, critic, seqs)
		_, got := learn(t, all, seqs)
		require.Equal(t, want, got)
	}
	_, want := saved(t, alone)
	_, got := saved(t, all)
	require.Equal(t, want, got, "policy")
	_, want = savedAs(t, critic, policy.RoleCritic)
	_, got = savedAs(t, all, policy.RoleCritic)
	require.Equal(t, want, got, "critic")
	require.Equal(t, before.LogProbs, outputsOf(t, all, reference).LogProbs, "reference")

	// What one role kept is not another's, nor dropped with another's.
	out := forward(t, all, seqs, true)
	c := policy.Cotangents{Values: weighted(seqs, 1)}
	require.ErrorIs(t, all.Backward(ctx, policy.RoleCritic, out.Kept, c), policy.ErrNotKept)
	require.NoError(t, all.Discard(ctx, policy.RoleCritic))
	require.NoError(t, all.Backward(ctx, policy.RolePolicy, out.Kept, policy.Cotangents{LogProbs: weighted(seqs, 1)}))
}

func testCriticNonFinite(t *testing.T, f TrainerFixture) {
	e := taught(t, f)
	seqs := sequences(f, 36, 8)
	_, before := savedAs(t, e, policy.RoleCritic)
	for _, v := range []float64{math.NaN(), math.Inf(-1)} {
		kept := values(t, e, seqs, true).Kept
		refusesToStep(t, e, policy.RoleCritic, kept, policy.Cotangents{Values: weighted(seqs, float32(v))})
	}
	_, after := savedAs(t, e, policy.RoleCritic)
	require.Equal(t, before, after, "a refused step changes nothing")
}

func testCriticErrors(t *testing.T, f TrainerFixture) {
	e, ctx := taught(t, f), context.Background()
	seqs := sequences(f, 37, 6)
	require.NoError(t, e.Load(ctx, policy.RoleReference, f.Dir, false))
	for _, c := range []struct {
		role policy.Role
		out  policy.Outputs
	}{
		{policy.RolePolicy, policy.OutValue},
		{policy.RolePolicy, policy.OutLogProb | policy.OutValue},
		{policy.RoleReference, policy.OutValue},
		{policy.RoleCritic, policy.OutLogProb},
		{policy.RoleCritic, policy.OutEntropy},
		{policy.RoleCritic, policy.OutLogProb | policy.OutValue},
	} {
		_, err := e.Forward(ctx, pass(c.role, seqs, c.out))
		require.ErrorIs(t, err, policy.ErrBadRequest, "outputs %b of the %s", c.out, c.role)
	}
	out := values(t, e, seqs, true)
	err := e.Backward(ctx, policy.RoleCritic, out.Kept, policy.Cotangents{LogProbs: weighted(seqs, 1)})
	require.ErrorIs(t, err, policy.ErrBadRequest)
	err = e.Backward(ctx, policy.RoleCritic, out.Kept, policy.Cotangents{Values: weighted(seqs[:0], 1)})
	require.ErrorIs(t, err, policy.ErrBadRequest)

	dir, _ := savedAs(t, e, policy.RoleCritic)
	before := stateOf(t, e, policy.RolePolicy)
	require.ErrorIs(t, e.Load(ctx, policy.RolePolicy, dir, false), policy.ErrBadRequest, "a critic is no policy")
	require.Equal(t, before, stateOf(t, e, policy.RolePolicy))
}
