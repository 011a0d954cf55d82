package cpu

import (
	"math"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/checkpoint"
	"github.com/ropewalk/ropewalk/rl/optimizer"
)

// untiedCritic is an engine with a critic that has its own output head.
func untiedCritic(t *testing.T) *engine[float32] {
	t.Helper()
	s := tiny
	s.Untied = true
	dir := filepath.Join(t.TempDir(), "policy")
	_, err := checkpoint.Write(dir, loaded[float32](t, s, blasGonum, 1).checkpoint())
	require.NoError(t, err)
	e, err := open[float32](Options{Threads: 2, BLAS: blasGonum})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	require.NoError(t, e.Load(t.Context(), policy.RoleCritic, dir, true))
	return e
}

// A value depends on no logit, so that weight decay would be all that moves the output head: it stays.
func TestACriticKeepsItsOutputHead(t *testing.T) {
	e := untiedCritic(t)
	r := e.roles[policy.RoleCritic]
	before := append([]float32(nil), r.model.flat...)
	seqs := randomSequences(4, tiny.Vocab, 20, 7)
	for range 2 {
		out, err := e.Forward(
			t.Context(),
			policy.ForwardRequest{
				Role: policy.RoleCritic, Sequences: seqs, Temperature: 1, Outputs: policy.OutValue, Keep: true,
			},
		)
		require.NoError(t, err)
		require.NoError(
			t, e.Backward(t.Context(), policy.RoleCritic, out.Kept, policy.Cotangents{Values: randomLike(5, seqs)}),
		)
		_, err = e.Step(
			t.Context(), policy.RoleCritic,
			policy.StepOptions{LR: 0.01,
				Rule: optimizer.AdamW{Beta1: 0.9, Beta2: 0.95, Epsilon: 1e-8, WeightDecay: 0.5}},
		)
		require.NoError(t, err)
	}
	for _, p := range r.model.params {
		if p.name == checkpoint.NameHead {
			require.Equal(t, before[p.lo:p.hi], r.model.flat[p.lo:p.hi])
			continue
		}
		require.NotEqual(t, before[p.lo:p.hi], r.model.flat[p.lo:p.hi], p.name)
	}
}

func TestNonFiniteHeadIsNamed(t *testing.T) {
	e := untiedCritic(t)
	r := e.roles[policy.RoleCritic]
	h := r.model.shape.Hidden
	for i, name := range map[int]string{0: checkpoint.NameValueWeight, h: checkpoint.NameValueBias} {
		r.workers[0].ensureGrad()
		r.workers[0].grad.value[i] = float32(math.Inf(1))
		_, err := e.Step(t.Context(), policy.RoleCritic, policy.StepOptions{Rule: optimizer.AdamW{}})
		var nf *policy.NonFiniteError
		require.ErrorAs(t, err, &nf)
		require.Equal(t, name, nf.Name)
		require.NoError(t, e.Discard(t.Context(), policy.RoleCritic))
	}
	r.model.w.value[h] = float32(math.NaN())
	_, err := e.Forward(
		t.Context(),
		policy.ForwardRequest{
			Role: policy.RoleCritic, Sequences: [][]int32{{1, 2}}, Temperature: 1, Outputs: policy.OutValue,
		},
	)
	var nf *policy.NonFiniteError
	require.ErrorAs(t, err, &nf)
	require.Equal(t, "value", nf.Name)
}

func TestARoleWithoutTrainingHoldsItsWeightsAlone(t *testing.T) {
	e := untiedCritic(t)
	_, err := e.Forward(
		t.Context(),
		policy.ForwardRequest{
			Role: policy.RoleCritic, Sequences: [][]int32{{1, 2}}, Temperature: 1, Outputs: policy.OutValue,
		},
	)
	require.NoError(t, err)
	r := e.roles[policy.RoleCritic]
	require.Nil(t, r.trained.states)
	for _, w := range r.workers {
		require.Nil(t, w.gradFlat)
	}
}
