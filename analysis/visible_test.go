package analysis_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/internal/testing/recordtest"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store/mem"
)

// seen counts the visible rows of a table by step.
func seen(t *testing.T, record *analysis.Record, table schema.Table) map[int]int {
	t.Helper()
	v, err := record.Visible(context.Background(), "r")
	require.NoError(t, err)
	shards, err := v.Shards(context.Background(), table)
	require.NoError(t, err)
	out := map[int]int{}
	for _, s := range shards {
		require.Equal(t, "r", s.Run)
		out[s.Step] += s.Rows
	}
	return out
}

func TestVisibleIsWhatHeadsName(t *testing.T) {
	objects := mem.New()
	recordtest.Train(t, objects, recordtest.Options{Run: "r", Steps: 2, Planned: 9, Seed: 1, Open: true})
	record := analysis.New(objects)
	for table, rows := range map[schema.Table]int{
		schema.Prompts: 3, schema.Turns: 18, schema.ToolCalls: 6, schema.Trajectories: 12, schema.Rewards: 12,
		schema.Selection: 12, schema.Batch: 6, schema.Updates: 2,
	} {
		require.Equal(t, map[int]int{1: rows}, seen(t, record, table), table)
	}
	require.Equal(t, map[int]int{analysis.NoStep: 8}, seen(t, record, schema.Evaluations))
	// The step in progress has recorded its calls' times; those of its activities come with its end.
	require.Equal(t, map[int]int{analysis.NoStep: 2, 1: 15 + 6, 2: 6}, seen(t, record, schema.Timings))
}

func TestReplaysAreNotVisible(t *testing.T) {
	ctx := context.Background()
	objects := mem.New()
	recordtest.Train(t, objects, recordtest.Options{Run: "r", Steps: 1, Seed: 1})
	writer := commit.New(objects)
	for _, place := range []schema.Place{schema.At("r", 1, schema.StageResample),
		schema.At("r", 1, schema.StageEvaluate), schema.At("r", 1, "timings_step")} {
		m, _, found, err := writer.Lookup(ctx, place)
		require.NoError(t, err)
		require.True(t, found)
		again := schema.NewManifest(place.WithGen(1), m.Code, m.Config)
		for _, s := range m.Shards {
			data, err := writer.ReadShard(ctx, s)
			require.NoError(t, err)
			info, err := writer.Shard(ctx, again.Place, s.Table, data, s.Rows)
			require.NoError(t, err)
			again.Shards = append(again.Shards, info)
		}
		_, _, _, err = writer.Commit(ctx, again)
		require.NoError(t, err)
	}
	record := analysis.New(objects)
	require.Equal(t, map[int]int{1: 12}, seen(t, record, schema.Selection))
	require.Equal(t, map[int]int{analysis.NoStep: 8, 1: 8}, seen(t, record, schema.Evaluations))
	require.Equal(t, map[int]int{analysis.NoStep: 2, 1: 15 + 6 + 1}, seen(t, record, schema.Timings))
}

func TestTokenOutputsAreVisible(t *testing.T) {
	objects := mem.New()
	recordtest.Train(t, objects, recordtest.Options{Run: "r", Steps: 2, Seed: 1, Outputs: true})
	require.Equal(t, map[int]int{1: 6, 2: 6}, seen(t, analysis.New(objects), schema.TokenOutputs))
}

func TestGradingsAreVisible(t *testing.T) {
	objects := mem.New()
	recordtest.Train(t, objects, recordtest.Options{Run: "r", Steps: 2, Seed: 1, Gradings: true})
	require.Equal(t, map[int]int{1: 6, 2: 4}, seen(t, analysis.New(objects), schema.Gradings))
}

func TestReplayBufferIsVisible(t *testing.T) {
	objects := mem.New()
	recordtest.Train(t, objects, recordtest.Options{Run: "r", Steps: 3, Seed: 1, Buffer: true})
	record := analysis.New(objects)
	require.Equal(t, map[int]int{1: 2, 2: 6, 3: 0}, seen(t, record, schema.Replay))
	require.Equal(t, map[int]int{1: 3, 2: 3, 3: 3}, seen(t, record, schema.Baselines))
	require.Equal(t, map[int]int{3: 6}, seen(t, record, schema.ReplayBatch))
}

// An import's rollout holds prompts, turns and trajectories; assemble's trajectories replace the
// imported ones.
func TestVisibleImport(t *testing.T) {
	ctx := context.Background()
	objects := mem.New()
	writer := commit.New(objects)
	config := schema.Digest([]byte("{}\n"))
	commitAt := func(place schema.Place, parts []schema.Ref, shards ...schema.ShardInfo) schema.Ref {
		m := schema.NewManifest(place, recordtest.Code, config)
		m.Parts, m.Shards = parts, shards
		_, ref, _, err := writer.Commit(ctx, m)
		require.NoError(t, err)
		return ref
	}
	prompt := schema.PromptRow{GroupID: "00001/0000", ProblemID: "p"}
	turn := schema.TurnRow{GroupID: "00001/0000", TrajectoryID: "00001/0000/000", Finish: "stop", Response: "4"}
	trajectory := schema.TrajectoryRow{GroupID: "00001/0000", TrajectoryID: "00001/0000/000", ProblemID: "p",
		Source: "elsewhere/a", Finish: "answered"}
	prepare := schema.AtInit("r", schema.StagePrepare)
	document, err := writer.Shard(ctx, prepare, schema.Documents, []byte("{}\n"), 1)
	require.NoError(t, err)
	commitAt(prepare, nil, document)
	shard := schema.At("r", 1, schema.StageRollout).WithTurn(0).WithShard(0)
	prompts, err := commit.PutRows(ctx, writer, shard, []schema.PromptRow{prompt})
	require.NoError(t, err)
	turns, err := commit.PutRows(ctx, writer, shard, []schema.TurnRow{turn})
	require.NoError(t, err)
	imported, err := commit.PutRows(ctx, writer, shard, []schema.TrajectoryRow{trajectory})
	require.NoError(t, err)
	rollout := commitAt(shard.StageManifest(), []schema.Ref{commitAt(shard, nil, prompts, turns, imported)})
	trajectory.ToolErrors, trajectory.ToolCalls = 1, 1
	assemble := schema.At("r", 1, schema.StageAssemble)
	assembled, err := commit.PutRows(ctx, writer, assemble, []schema.TrajectoryRow{trajectory})
	require.NoError(t, err)
	head, err := schema.NewHead("r", "1", rollout, commitAt(assemble, nil, assembled))
	require.NoError(t, err)
	_, _, _, err = writer.CommitHead(ctx, head)
	require.NoError(t, err)

	record := analysis.New(objects)
	for _, table := range []schema.Table{schema.Prompts, schema.Turns, schema.Trajectories} {
		require.Equal(t, map[int]int{1: 1}, seen(t, record, table), table)
	}
	v, err := record.Visible(ctx, "r")
	require.NoError(t, err)
	shards, err := v.Shards(ctx, schema.Trajectories)
	require.NoError(t, err)
	require.Equal(t, assembled.Key, shards[0].Key)
}

// What is cached is asked for once, whatever becomes of the object in the store.
func TestCacheServesManifestsAndShards(t *testing.T) {
	ctx := context.Background()
	objects := mem.New()
	recordtest.Train(t, objects, recordtest.Options{Run: "r", Steps: 1, Seed: 1, Created: "2026-01-02T03:04:05Z"})
	files, err := analysis.OpenCache(t.TempDir())
	require.NoError(t, err)
	record := analysis.New(objects).WithCache(files)
	before, err := record.Overview(ctx, "r")
	require.NoError(t, err)
	listed, err := objects.List(ctx, "runs/run=r/table=")
	require.NoError(t, err)
	for _, o := range listed {
		require.NoError(t, objects.Delete(ctx, o.Key))
	}
	after, err := record.Overview(ctx, "r")
	require.NoError(t, err)
	require.Equal(t, before, after)
	_, err = analysis.New(objects).Overview(ctx, "r")
	require.ErrorIs(t, err, commit.ErrDamaged)
}
