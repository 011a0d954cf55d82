package learner

import (
	"context"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/rl/loss"
)

// reticent is a trainer that has no entropies and does not tell the gradient's norm.
type reticent struct {
	policy.Trainer
	t *testing.T
}

// Lacks implements policy.Lacking.
func (reticent) Lacks() policy.Outputs { return policy.OutEntropy | policy.OutValue }

// Forward implements policy.Trainer.
func (r reticent) Forward(ctx context.Context, req policy.ForwardRequest) (policy.TokenOutputs, error) {
	require.Equal(r.t, policy.OutLogProb, req.Outputs)
	return r.Trainer.Forward(ctx, req)
}

// Step implements policy.Trainer.
func (r reticent) Step(ctx context.Context, role policy.Role, o policy.StepOptions) (policy.StepStats, error) {
	stats, err := r.Trainer.Step(ctx, role, o)
	stats.GradNorm = math.NaN()
	return stats, err
}

// A trainer without entropies trains the same policy; what it does not tell is null, and a loss that needs entropies is
// refused before anything is computed.
func TestATrainerWithoutEntropies(t *testing.T) {
	whole, part := newBigram(vocab), newBigram(vocab)
	batch := testBatch(whole, 12, 1)
	want := mustUpdate(t, whole, batch, testConfig())
	got, err := Update(t.Context(), reticent{part, t}, batch, testConfig(), nil)
	require.NoError(t, err)
	require.Equal(t, whole.table, part.table)
	for i, u := range got.Updates {
		require.Nil(t, u.Entropy)
		require.Nil(t, u.GradNorm)
		require.NotNil(t, want.Updates[i].Entropy)
		require.Equal(t, want.Updates[i].Loss, u.Loss)
		require.Equal(t, want.Updates[i].KL, u.KL)
	}
	cfg := testConfig()
	cfg.Objective.Entropy = &loss.Entropy{Coefficient: 0.1}
	_, err = Update(t.Context(), reticent{part, t}, batch, cfg, nil)
	require.ErrorIs(t, err, policy.ErrBadRequest)
	require.ErrorContains(t, err, "the trainer has no entropies")
}
