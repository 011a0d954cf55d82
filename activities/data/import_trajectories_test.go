package data

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/schema"
)

// importedGroups are rows of n groups with up to three trajectories each.
func importedGroups(n int) imported {
	draw := rand.New(rand.NewPCG(1, uint64(n)))
	var t imported
	for g := range n {
		group := schema.GroupID(1, g)
		t.prompts = append(t.prompts, schema.PromptRow{GroupID: group})
		for k := range 1 + draw.IntN(3) {
			id := schema.TrajectoryID(1, g, k)
			t.trajectories = append(t.trajectories, schema.TrajectoryRow{GroupID: group, TrajectoryID: id})
			for turn := range 1 + draw.IntN(2) {
				t.turns = append(t.turns, schema.TurnRow{GroupID: group, TrajectoryID: id, Turn: int32(turn)})
			}
		}
	}
	return t
}

// For any number of groups, the shards in sequence are the original rows.
func TestShardsOfAnImportHoldEveryRow(t *testing.T) {
	for _, n := range []int{0, 1, shardGroups - 1, shardGroups, shardGroups + 1, 9_983, 9_984, 9_985, 9_999,
		schema.MaxGroups} {
		rows := importedGroups(n)
		shards, err := rows.shards()
		require.NoError(t, err)
		var all imported
		for i, s := range shards {
			require.Equal(t, schema.GroupID(1, i*shardGroups), s.prompts[0].GroupID)
			require.Len(t, s.prompts, min(shardGroups, n-i*shardGroups), "shard %d of %d groups", i, n)
			all.prompts = append(all.prompts, s.prompts...)
			all.turns = append(all.turns, s.turns...)
			all.trajectories = append(all.trajectories, s.trajectories...)
		}
		require.True(t, slices.EqualFunc(rows.turns, all.turns, func(x, y schema.TurnRow) bool {
			return x.TrajectoryID == y.TrajectoryID && x.Turn == y.Turn
		}), "%d groups", n)
		require.True(t, slices.EqualFunc(rows.trajectories, all.trajectories, func(x, y schema.TrajectoryRow) bool {
			return x.TrajectoryID == y.TrajectoryID
		}), "%d groups", n)
	}
}

func TestAGroupBeyondThePromptsIsAnError(t *testing.T) {
	rows := importedGroups(3)
	rows.turns = append(rows.turns, schema.TurnRow{GroupID: schema.GroupID(1, 3)})
	_, err := rows.shards()
	require.ErrorContains(t, err, "group 00001/0003: there are 3 prompts")
}
