package recipes

import (
	"testing"

	"github.com/stretchr/testify/require"
)

const staged = "schedule={stages: [{from_step: 3, max_tokens: 224, lr: 0.5}, {from_step: 5, problems: unsolved, " +
	"samples: 4, reset_optimizer: true, refresh_reference: true}, " +
	"{from_step: 8, max_tokens: 256, problems: same}]}"

func TestStages(t *testing.T) {
	r, err := ParseWith("f", []byte(small), []string{staged, "rollout.max_tokens=200"})
	require.NoError(t, err)
	before, err := r.Canonical()
	require.NoError(t, err)
	for _, c := range []struct {
		step, tokens int
		lr           float64
		samples      int
		reset        int
		reference    int
	}{
		{-1, 200, 0.001, 0, 0, 0},
		{0, 200, 0.001, 0, 0, 0},
		{2, 200, 0.001, 0, 0, 0},
		{3, 224, 0.5, 0, 0, 0},
		{5, 224, 0.5, 4, 5, 4}, // a stage keeps the settings that it does not change
		{7, 224, 0.5, 4, 5, 4},
		{8, 256, 0.5, 4, 5, 4}, // problems does not change: the unsolved ones
		{10, 256, 0.5, 4, 5, 4},
	} {
		at := r.At(c.step)
		require.Equal(t, c.tokens, at.Rollout.MaxTokens, c.step)
		require.Equal(t, c.lr, at.Optimizer.LR, c.step)
		require.Equal(t, c.samples, at.Schedule.Unsolved(c.step), c.step)
		require.Equal(t, c.reset, at.Schedule.OptimizerReset(c.step), c.step)
		require.Equal(t, c.reference, at.ReferenceStep(c.step), c.step)
		require.Equal(t, at, at.At(c.step), "it is the same again")
		at.Rollout.MaxTokens, at.Optimizer.LR = r.Rollout.MaxTokens, r.Optimizer.LR
		require.Equal(t, r, at, "nothing else is another")
	}
	after, err := r.Canonical()
	require.NoError(t, err)
	require.Equal(t, before, after, "the recipe itself stays")
}

func TestWithoutStagesARecipeIsTheSameAtEveryStep(t *testing.T) {
	for _, set := range [][]string{nil, {"schedule={stages: []}"}} {
		r, err := ParseWith("f", []byte(small), set)
		require.NoError(t, err)
		require.Same(t, r, r.At(7))
		require.Zero(t, r.Schedule.Unsolved(7)+r.Schedule.OptimizerReset(7)+r.ReferenceStep(7))
	}
}

// A stage refreshes the reference between two refreshes of loss.reference.
func TestTheLaterRefreshmentCounts(t *testing.T) {
	r, err := ParseWith("f", []byte(small), []string{staged, "loss.kl={coefficient: 0.1}",
		"loss.reference.refresh_every=3"})
	require.NoError(t, err)
	for step, want := range map[int]int{1: 0, 4: 3, 5: 4, 6: 4, 7: 6} {
		require.Equal(t, want, r.ReferenceStep(step), step)
	}
}
