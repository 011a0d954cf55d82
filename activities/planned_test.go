package activities

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"github.com/ropewalk/ropewalk/activities/wire"
	"github.com/ropewalk/ropewalk/recipes"
)

// What no stage does yet is refused for good, with all of it, before anything is written.
func TestPlannedChoicesAreRefused(t *testing.T) {
	b := laneOf(t, nil, nil)
	before, err := b.deps.Store.List(t.Context(), "")
	require.NoError(t, err)
	refused := func(err error) {
		t.Helper()
		var failure *temporal.ApplicationError
		require.ErrorAs(t, err, &failure)
		require.Equal(t, wire.FailBadInput, failure.Type())
		require.True(t, failure.NonRetryable())
		require.ErrorContains(t, err, "cannot run yet:\n")
	}
	_, err = do(b, PrepareRun{b.deps}.Execute, wire.PrepareInput{Run: "new", Kind: "train", Recipe: "presets/sampo-alfworld"})
	refused(err)
	require.ErrorContains(t, err, "environment.name: alfworld: the environment is not built yet")
	require.ErrorContains(t, err, "policy.checkpoint: runs start from models that are made here")

	_, err = do(b, AmendRecipe{b.deps}.Execute, wire.AmendInput{Run: "r", Config: b.scope.Config, From: 2, Set: []string{"rollout.mode=tree", "rollout.tree={rule: arpo, roots: 1}"}})
	refused(err)
	after, err := b.deps.Store.List(t.Context(), "")
	require.NoError(t, err)
	require.Equal(t, before, after)

	resolved, err := recipes.Resolve("quickstart", "", nil, nil, nil)
	require.NoError(t, err)
	_, err = replayRecipe("r", &resolved.Recipe, []string{"reward={name: prs_long, judge: server}"}, []string{wire.StageReward})
	require.ErrorContains(t, err, "reward.judge: server: no client for a judge's server yet")
}
