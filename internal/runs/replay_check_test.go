package runs

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/internal/testing/recordtest"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store/mem"
	"github.com/ropewalk/ropewalk/workflows"
)

// The stage reward commits a shard of the table selection next to the rewards if a trajectory was excluded: a check
// makes that shard again and lists it. Step 1 has such a shard; step 2, which lost a shard of its rollout, has none.
func TestAChecksReportListsEachShardThatThePureStagesMade(t *testing.T) {
	objects := mem.New()
	recordtest.Train(t, objects, recordtest.Options{Run: "r", Steps: 2, Seed: 1, Skipped: 2,
		Broken: map[string]string{schema.TrajectoryID(1, 0, 0): "engine: panicked"}})
	state := workflows.CheckState{Steps: []int{1, 2}, Shards: 8, Differs: []api.Different{
		{Step: 1, Stage: schema.StageReward, Shard: 0, Table: string(schema.Selection), Digest: "abc"}}}
	report, err := CheckedShards(t.Context(), objects, state, "r")
	require.NoError(t, err)
	type line struct {
		step, shard int
		stage       string
		table       schema.Table
		now         string
	}
	var got []line
	for _, s := range report.Shards {
		require.Equal(t, s.Now == "", s.Same)
		got = append(got, line{s.Step, s.Shard, s.Stage, s.table, s.Now})
	}
	require.Equal(t, []line{
		{1, 0, schema.StageReward, schema.Selection, "abc"},
		{1, 0, schema.StageReward, schema.Rewards, ""},
		{1, 1, schema.StageReward, schema.Rewards, ""},
		{1, -1, schema.StageResample, schema.Selection, ""},
		{1, -1, schema.StageAdvantage, schema.Batch, ""},
		{2, 0, schema.StageReward, schema.Rewards, ""},
		{2, -1, schema.StageResample, schema.Selection, ""},
		{2, -1, schema.StageAdvantage, schema.Batch, ""},
	}, got)

	state.Shards = 7
	_, err = CheckedShards(t.Context(), objects, state, "r")
	require.ErrorContains(t, err, "replay has made 7 shards of run r and its heads name 8")
}
