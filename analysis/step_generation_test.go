package analysis_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/internal/testing/recordtest"
	"github.com/ropewalk/ropewalk/internal/testing/tamper"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store"
	"github.com/ropewalk/ropewalk/store/mem"
)

// replayed commits generation 1 of a step's selection as a replay does, under a recipe of its own.
func replayed(t *testing.T, objects store.Store, step int) (claim, selection schema.Ref) {
	t.Helper()
	ctx := context.Background()
	writer := commit.New(objects)
	old, _, _, err := writer.Lookup(ctx, schema.At("r", step, schema.StageResample))
	require.NoError(t, err)
	place := schema.At("r", step, schema.StageReplay).WithGen(1)
	document, err := commit.PutDocument(ctx, writer, place, map[string]any{"name": "another recipe"})
	require.NoError(t, err)
	m := schema.NewManifest(place, recordtest.Code, document.Digest)
	m.Shards, m.Inputs = []schema.ShardInfo{document}, old.Inputs
	_, claim, _, err = writer.Commit(ctx, m)
	require.NoError(t, err)

	rows, err := commit.Rows[schema.SelectionRow](ctx, writer, old)
	require.NoError(t, err)
	rows[0].Kept, rows[0].Reason = false, "small_group"
	rows[0].Count, rows[0].Weight = 0, 0
	made := schema.NewManifest(old.Place.WithGen(1), recordtest.Code, document.Digest)
	made.Inputs = append([]schema.Ref{claim}, old.Inputs[1:]...)
	info, err := commit.PutRows(ctx, writer, made.Place, rows)
	require.NoError(t, err)
	made.Shards = append(made.Shards, info)
	_, selection, _, err = writer.Commit(ctx, made)
	require.NoError(t, err)
	return claim, selection
}

func TestGenerationBorrowsWhatItHasNotMade(t *testing.T) {
	ctx := context.Background()
	objects := mem.New()
	recordtest.Train(t, objects, recordtest.Options{Run: "r", Steps: 2, Planned: 3, Seed: 1, Open: true})
	replayed(t, objects, 1)
	record := analysis.New(objects)
	first, err := record.StepGeneration(ctx, "r", 1, 0)
	require.NoError(t, err)
	second, err := record.StepGeneration(ctx, "r", 1, 1)
	require.NoError(t, err)
	require.Equal(t, map[string]int{"reward": 0, "resample": 0, "advantage": 0}, first.From)
	require.Equal(t, map[string]int{"reward": 0, "resample": 1, "advantage": 0}, second.From)
	require.Equal(t, first.Rewards, second.Rewards)
	require.Len(t, second.Rewards, recordtest.Groups*recordtest.Samples)
	require.Equal(t, first.Batch, second.Batch)
	require.NotEmpty(t, second.Batch)
	require.True(t, first.Selection[0].Kept)
	require.False(t, second.Selection[0].Kept)

	open, err := record.StepGeneration(ctx, "r", 2, 0) // a step without a head
	require.NoError(t, err)
	require.Len(t, open.Rewards, recordtest.Groups*recordtest.Samples)

	_, err = record.StepGeneration(ctx, "r", 1, 5)
	require.ErrorIs(t, err, analysis.ErrNoGeneration)
	require.ErrorContains(t, err, "step 1 of run r has no generation 5; it has 0, 1")
	_, err = record.StepGeneration(ctx, "r", 9, 0)
	require.ErrorIs(t, err, analysis.ErrNoStep)
	_, err = record.StepGeneration(ctx, "x", 1, 0)
	require.ErrorIs(t, err, analysis.ErrNoRun)
}

func TestVerifyTakesAReplayUnderItsOwnRecipe(t *testing.T) {
	objects := mem.New()
	recordtest.Train(t, objects, recordtest.Options{Run: "r", Steps: 1, Seed: 1})
	claim, selection := replayed(t, objects, 1)
	v := tamper.Verify(t, objects)
	require.Empty(t, v.Faults)
	require.Zero(t, v.Orphans)

	// Without the claim, nothing says why the selection was made under another recipe.
	require.NoError(t, objects.Delete(context.Background(), claim.Key))
	require.Equal(t, []string{"missing " + claim.Key, "lineage " + selection.Key},
		tamper.Faults(tamper.Verify(t, objects)))
}
