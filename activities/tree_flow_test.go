package activities

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/schema"
)

// A worker dies before each of the commits of a shard with trees in turn, with all that its flow has done kept. Only
// what was in flight is generated again or runs again, the trees are those of turn by turn, and nothing is left.
func TestTreeFlowsGoOnAfterKills(t *testing.T) {
	room := []string{"rollout.tree={rule: arpo, roots: 2, threshold: 1}", "rollout.samples_per_prompt=5"}
	staged := episodesOf(t, 3, room...) // an engine whose rows depend on each other has no flow
	want, err := staged.run()
	require.NoError(t, err)
	plain := flowsOf(t, 3, room...)
	got, err := plain.run()
	require.NoError(t, err)
	require.Equal(t, want.Assembled, got.Assembled)
	require.Equal(t, want.Scored.Manifest, got.Scored.Manifest)
	asked := int(plain.invariant.rows.Load())
	chain, err := plain.deps.ShardChain(t.Context(), got.Assembled)
	require.NoError(t, err)
	require.Len(t, rowsAt[schema.TurnRow](plain.stepBench, chain...), asked,
		"shared turns are generated once")

	b := flowsOf(t, 3, room...)
	objects := b.deps.Store
	generated, resumed := b.diesAtEachCommit()
	require.Positive(t, resumed)
	b.at(objects, b.sandbox)
	got, err = b.run()
	require.NoError(t, err)
	require.Zero(t, b.invariant.rows.Load())
	require.LessOrEqual(t, generated, asked+2*b.trajectories())
	require.Equal(t, want.Assembled, got.Assembled)
	require.Equal(t, want.Scored.Manifest, got.Scored.Manifest)
	for trace, times := range b.sandbox.ran {
		require.LessOrEqual(t, times, 3, trace)
	}
	require.Empty(t, b.segments())
}
