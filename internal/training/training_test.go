package training

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/rl/loss"
	"github.com/ropewalk/ropewalk/schema"
)

func resolved(t *testing.T, set ...string) *recipes.Recipe {
	t.Helper()
	r, err := recipes.Resolve("quickstart", "", set, nil, nil)
	require.NoError(t, err)
	return &r.Recipe
}

func TestTermsOfTheObjective(t *testing.T) {
	o, err := objective(resolved(t, "loss.kl=null", "loss.tis=null", "loss.entropy=0"), 0.3)
	require.NoError(t, err)
	require.Nil(t, o.KL)
	require.Nil(t, o.TIS)
	require.Nil(t, o.Entropy)
	require.Nil(t, o.SequenceMask)

	recipe := resolved(t, "loss.old_log_probs=recompute", "loss.tis={cap: 2}", "loss.entropy=0.01",
		"loss.kl={coefficient: 0.1, estimator: k2}")
	o, err = objective(recipe, 0.3)
	require.NoError(t, err)
	require.Equal(t, &loss.KL{Estimator: loss.K2, Coefficient: 0.3}, o.KL, "the step's coefficient, not the first")
	require.Equal(t, &loss.TIS{Cap: 2}, o.TIS)
	require.Equal(t, &loss.Entropy{Coefficient: 0.01}, o.Entropy)
	require.Equal(t, recipe.Rollout.MaxTokens, o.Aggregation.Horizon)

	o, err = objective(resolved(t, "advantage={name: reinforce_pp}", "loss.kl={in: reward, coefficient: 0.1}"), 0.3)
	require.NoError(t, err)
	require.Nil(t, o.KL, "the penalty is in the reward")
}

// Each step draws from streams of its own, and the rate follows the schedule.
func TestUpdatesOfSteps(t *testing.T) {
	recipe := resolved(t, "steps=10", "optimizer.warmup_steps=4", "optimizer.decay=linear")
	draws := map[uint64]bool{}
	rates := map[int]float64{}
	for step := 1; step <= 10; step++ {
		c, err := Update(recipe, step, 0)
		require.NoError(t, err)
		draws[c.Shuffle.Uint64()], draws[c.Tokens.Uint64()] = true, true
		rates[step] = c.Optimizer.LR
	}
	require.Len(t, draws, 20)
	require.Less(t, rates[1], rates[4])
	require.Less(t, rates[10], rates[5])
}

func TestImitationOfAStep(t *testing.T) {
	require.Nil(t, Imitation(resolved(t), 3, loss.Aggregation{}, nil))
	require.Equal(t, 1.0, Gamma(resolved(t), 3))
	recipe := resolved(t, "replay={coefficient: 2, order: joint}", "schedule={gamma_horizon: 8}")
	rows := []schema.BatchRow{{TrajectoryID: "a"}}
	i := Imitation(recipe, 4, loss.Aggregation{}, rows)
	require.True(t, i.Joint)
	require.Equal(t, rows, i.Rows)
	require.Equal(t, 2*Gamma(recipe, 4), i.Objective.Policy.(loss.SelfImitation).Gamma)
	require.InDelta(t, 0.5, Gamma(recipe, 4), 1e-12, "half of a cosine's rise")
}

// Figures are means over the optimiser steps on the batch; those on the replay batch do not count.
func TestFiguresOfAnUpdate(t *testing.T) {
	replayed, policy := schema.SourceReplay, schema.SourcePolicy
	f := FiguresOf([]schema.UpdateRow{
		{Loss: 1, KL: 2, Entropy: new(3.0), ClipFraction: 0.5, GradNorm: new(4.0), ReferenceKL: new(1.0),
			Source: &policy},
		{Loss: 3, KL: 4, Entropy: new(5.0), ClipFraction: 0.25, GradNorm: new(2.0), ReferenceKL: new(2.0)},
		{Loss: 90, ReferenceKL: new(90.0), Source: &replayed},
	})
	require.Equal(t, Figures{Loss: 2, KL: 3, Entropy: new(4.0), ClipFraction: 0.375, GradNorm: new(3.0),
		ReferenceKL: new(1.5)}, f)
	require.Nil(t, FiguresOf([]schema.UpdateRow{{Loss: 1}}).ReferenceKL)
	require.Zero(t, FiguresOf(nil))
}
