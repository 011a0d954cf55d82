package activities

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store/faults"
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
	chain, err := plain.deps.shardChain(t.Context(), got.Assembled)
	require.NoError(t, err)
	require.Len(t, rowsAt[schema.TurnRow](plain.stepBench, chain...), asked,
		"shared turns are generated once")

	b := flowsOf(t, 3, room...)
	objects := b.deps.Store
	generated, resumed := 0, 0
	for _, place := range []string{"rollout/turn=0", "sandbox/turn=0", "rollout/turn=1", "sandbox/turn=1",
		"rollout/turn=2", "sandbox/turn=2", "rollout/turn=3", "assemble", "reward"} {
		b.at(faults.New(objects, faults.Rule{Op: faults.PutIfAbsent, Key: "manifests/step=1/" + place}), b.sandbox)
		_, err := b.run()
		require.ErrorContains(t, err, faults.ErrInjected.Error(), place)
		generated += int(b.invariant.rows.Load())
		if len(b.segments()) > 0 {
			resumed++
		}
	}
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
