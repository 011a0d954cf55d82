package recordtest

import (
	"context"
	"strconv"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/schema"
)

// Replay commits a replay of a finished step's stages reward, resample and advantage in a
// generation: rewards are halved, and of each group only the first sample is kept.
func (r *Run) Replay(step, gen int) {
	ctx := context.Background()
	head, _, _, err := r.writer.Head(ctx, r.Options.Run, strconv.Itoa(step))
	require.NoError(r.t, err)
	at := func(stage string) schema.Place { return schema.At(r.Options.Run, step, stage).WithGen(gen) }
	claim := r.manifest(at(schema.StageReplay), head.Stages[schema.StageAssemble]...)
	claim.Shards = append(claim.Shards, r.document(claim.Place, r.recipe()))
	defer func(recipe schema.Ref) { r.Prepare = recipe }(r.Prepare)
	r.Prepare = r.commit(claim) // what is replayed is made under the claim's recipe
	reward := r.replayRewards(at(schema.StageReward), head)
	rows, err := commit.Rows[schema.SelectionRow](ctx, r.writer, r.read(head.Stages[schema.StageResample][0]))
	require.NoError(r.t, err)
	kept := map[string]bool{} // trajectories
	for i := range rows {
		rows[i].GroupMean, rows[i].GroupVariance = rows[i].GroupMean/2, rows[i].GroupVariance/4
		rows[i].Kept, rows[i].Count, rows[i].Weight, rows[i].Reason = false, 0, 0, "roc_positive_surplus"
		if i == 0 || rows[i].GroupID != rows[i-1].GroupID {
			kept[rows[i].TrajectoryID] = true
			rows[i].Kept, rows[i].Count, rows[i].Weight, rows[i].Reason = true, 1, 1, ""
		}
	}
	selection := put(r, r.manifest(at(schema.StageResample), reward), rows)
	inputs := append(append([]schema.Ref{}, head.Stages[schema.StageRollout]...), reward, selection)
	m := r.manifest(at(schema.StageAdvantage), inputs...)
	batch, err := commit.Batch(ctx, r.writer, r.read(head.Stages[schema.StageAdvantage][0]))
	require.NoError(r.t, err)
	var left []schema.BatchRow
	for _, b := range batch {
		if kept[b.TrajectoryID] {
			left = append(left, b)
		}
	}
	r.putBatch(m, left)
}

func (r *Run) replayRewards(place schema.Place, head schema.Head) schema.Ref {
	stage := r.manifest(place)
	old := r.read(head.Stages[schema.StageReward][0])
	for _, part := range old.Parts {
		m := r.read(part)
		rows, err := commit.Rows[schema.RewardRow](context.Background(), r.writer, m)
		require.NoError(r.t, err)
		for i := range rows {
			rows[i].Reward /= 2
		}
		stage.Parts = append(stage.Parts, put(r, r.manifest(place.WithShard(m.Shard), m.Inputs[1:]...), rows))
	}
	return r.commit(stage)
}

func (r *Run) read(ref schema.Ref) schema.Manifest {
	m, err := r.writer.Read(context.Background(), ref)
	require.NoError(r.t, err)
	return m
}

// headOf commits a step's head.
func (r *Run) headOf(step int, stages ...schema.Ref) {
	head, err := schema.NewHead(r.Options.Run, strconv.Itoa(step), stages...)
	require.NoError(r.t, err)
	_, _, _, err = r.writer.CommitHead(context.Background(), head)
	require.NoError(r.t, err)
}

// Fork commits a fork of the run after a step, which has taken no step of its own yet.
func (r *Run) Fork(run string, step int) {
	ctx := context.Background()
	m := r.read(r.Prepare)
	m.Run = run
	m.Shards = []schema.ShardInfo{r.document(m.Place, r.recipe())}
	m.Note[schema.NoteFork] = schema.ForkPoint{Run: r.Options.Run, Step: step}.String()
	r.commit(m)
	entry := r.canonical(schema.CatalogueEntry{Run: run, Recipe: "fixture", Seed: r.Seed, Steps: r.Planned,
		Created: r.Created})
	require.NoError(r.t, r.Store.PutIfAbsent(ctx, schema.CatalogueKey(run), entry))
	for i := 1; i <= step; i++ {
		head, _, _, err := r.writer.Head(ctx, r.Options.Run, strconv.Itoa(i))
		require.NoError(r.t, err)
		require.NoError(r.t, r.writer.ShareHead(ctx, head.SharedBy(run)))
	}
}
