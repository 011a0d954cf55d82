package prompts

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/schema"
)

func TestShardsGoOnFromRoundToRound(t *testing.T) {
	var rows []schema.PromptRow
	for g := range 10 {
		rows = append(rows, schema.PromptRow{GroupID: schema.GroupID(1, g)})
	}
	method := recipes.Rollout{Prompts: 5, ShardGroups: 2} // the third shard of a round has one group
	for shard, want := range [][]int{{0, 1}, {2, 3}, {4}, {5, 6}, {7, 8}, {9}, nil} {
		got, err := OfShard(rows, shard, method)
		require.NoError(t, err)
		var groups []int
		for _, r := range got {
			_, g, _ := schema.ParseGroupID(r.GroupID)
			groups = append(groups, g)
		}
		require.Equal(t, want, groups, "shard %d", shard)
	}
	got, err := OfShard(rows, -1, method)
	require.NoError(t, err)
	require.Empty(t, got)
}

// A shard reads the files that hold its groups, in every round.
func TestFilesOfAShard(t *testing.T) {
	r := recipes.Rollout{Prompts: 5, ShardGroups: 2}
	file := func(name string, rows int) schema.ShardInfo { return schema.ShardInfo{Key: name, Rows: rows} }
	files := []schema.ShardInfo{file("a", 3), file("b", 2)}
	for shard, want := range [][]schema.ShardInfo{files[:1], files, files[1:], files[:1], files, files[1:]} {
		require.Equal(t, want, FilesOfShard(files, shard, r), "shard %d", shard)
	}
	require.Equal(t, 512, PerFile(32))
	require.Equal(t, 500, PerFile(100))
	require.Equal(t, 600, PerFile(600), "a file holds whole shards")
}
