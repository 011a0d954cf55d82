package activities

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/activities/wire"
	"github.com/ropewalk/ropewalk/schema"
)

func TestAmendmentsFollowOneAnother(t *testing.T) {
	b := laneOf(t, nil, nil)
	first, err := do(b, AmendRecipe{b.deps}.Execute, wire.AmendInput{Run: "r", Config: b.scope.Config, From: 3, Set: []string{"rollout.temperature=0.5", "steps=7"}})
	require.NoError(t, err)
	require.Equal(t, wire.Amendment{Manifest: first.Manifest, Plan: first.Amendment.Plan, From: 3}, first.Amendment)
	require.Equal(t, 7, first.Amendment.Plan.Steps)
	second, err := do(b, AmendRecipe{b.deps}.Execute, wire.AmendInput{Run: "r", Config: first.Manifest, Number: 1, From: 4, Set: []string{"steps=8"}})
	require.NoError(t, err)

	all, err := b.deps.amendments(t.Context(), "r")
	require.NoError(t, err)
	require.Equal(t, []wire.Amendment{first.Amendment, second.Amendment}, all)
	recipe, err := b.deps.recipe(t.Context(), wire.Scope{Run: "r", Step: 4, Config: second.Manifest})
	require.NoError(t, err)
	require.Equal(t, 0.5, recipe.Rollout.Temperature, "the second amends the first")
	require.Equal(t, 8, recipe.Steps)
	m, err := b.deps.Record.Read(t.Context(), second.Manifest)
	require.NoError(t, err)
	require.Equal(t, []schema.Ref{first.Manifest}, m.Inputs)
}

func TestAnAmendmentIsMadeOnce(t *testing.T) {
	b := laneOf(t, nil, nil)
	in := wire.AmendInput{Run: "r", Config: b.scope.Config, From: 2, Set: []string{"steps=7"}}
	first, err := do(b, AmendRecipe{b.deps}.Execute, in)
	require.NoError(t, err)
	again, err := do(b, AmendRecipe{b.deps}.Execute, in)
	require.NoError(t, err)
	require.Equal(t, first.Amendment, again.Amendment)
	in.Set = []string{"steps=9"}
	_, err = do(b, AmendRecipe{b.deps}.Execute, in)
	require.ErrorContains(t, err, "amendment 0 of run r was made by somebody else")
}

func TestABadAmendmentLeavesTheRunAsItIs(t *testing.T) {
	b := laneOf(t, nil, nil)
	_, err := do(b, AmendRecipe{b.deps}.Execute, wire.AmendInput{Run: "r", Config: b.scope.Config, From: 2, Set: []string{"rollout.temperature=-1"}})
	require.ErrorContains(t, err, "rollout.temperature=-1: must be > 0")
	all, err := b.deps.amendments(t.Context(), "r")
	require.NoError(t, err)
	require.Empty(t, all)
}

// A step that is taken again must not adopt what a replay of it has made.
func TestAStepTakenAnewHasAGenerationOfItsOwn(t *testing.T) {
	b := laneOf(t, nil, nil)
	replayed := schema.NewManifest(schema.At("r", 1, schema.StageReward).WithGen(2), b.deps.Code, b.configDigest(t))
	replayed.Inputs = []schema.Ref{b.scope.Config}
	_, _, _, err := b.deps.Record.Commit(t.Context(), replayed)
	require.NoError(t, err)
	in := wire.AmendInput{Run: "r", Config: b.scope.Config, From: 1, Anew: true, Set: []string{"rollout.shard_groups=1"}}
	out, err := do(b, AmendRecipe{b.deps}.Execute, in)
	require.NoError(t, err)
	require.Equal(t, 3, out.Amendment.Gen)

	// The attempt that is tried again finds its own generation, whatever was made since.
	replayed.Gen = 5
	_, _, _, err = b.deps.Record.Commit(t.Context(), replayed)
	require.NoError(t, err)
	again, err := do(b, AmendRecipe{b.deps}.Execute, in)
	require.NoError(t, err)
	require.Equal(t, 3, again.Amendment.Gen)
}

// configDigest is the digest of the recipe that the lane runs under.
func (b *laneBench) configDigest(t *testing.T) string {
	t.Helper()
	c, err := b.deps.config(t.Context(), b.scope.Config)
	require.NoError(t, err)
	return c.digest
}
