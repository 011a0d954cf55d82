package analysis_test

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/internal/testing/recordtest"
	"github.com/ropewalk/ropewalk/internal/testing/tamper"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store/mem"
)

// replayedRun is a run of two steps, the second of which was replayed twice.
func replayedRun(t *testing.T) *mem.Store {
	t.Helper()
	objects := mem.New()
	r := recordtest.Train(t, objects, recordtest.Options{Run: "r", Steps: 2, Seed: 1, Created: "2026-01-02T03:04:05Z"})
	r.Replay(2, 1)
	r.Replay(2, 2)
	return objects
}

// seenByGen counts the visible rows of a table by step and generation.
func seenByGen(t *testing.T, record *analysis.Record, table schema.Table) map[[2]int]int {
	t.Helper()
	v, err := record.Visible(context.Background(), "r")
	require.NoError(t, err)
	shards, err := v.Shards(context.Background(), table)
	require.NoError(t, err)
	out := map[[2]int]int{}
	for _, s := range shards {
		out[[2]int{s.Step, s.Gen}] += s.Rows
	}
	return out
}

func TestGenerations(t *testing.T) {
	record := analysis.New(replayedRun(t))
	for _, c := range []struct {
		gen            analysis.Generation
		rewards, turns map[[2]int]int
	}{
		{analysis.Heads, map[[2]int]int{{1, 0}: 12, {2, 0}: 12}, map[[2]int]int{{1, 0}: 18, {2, 0}: 18}},
		{analysis.Numbered(0), map[[2]int]int{{1, 0}: 12, {2, 0}: 12}, map[[2]int]int{{1, 0}: 18, {2, 0}: 18}},
		{analysis.Numbered(1), map[[2]int]int{{1, 0}: 12, {2, 1}: 12}, map[[2]int]int{{1, 0}: 18, {2, 0}: 18}},
		{analysis.Numbered(2), map[[2]int]int{{1, 0}: 12, {2, 2}: 12}, map[[2]int]int{{1, 0}: 18, {2, 0}: 18}},
		{analysis.AllGenerations, map[[2]int]int{{1, 0}: 12, {2, 0}: 12, {2, 1}: 12, {2, 2}: 12},
			map[[2]int]int{{1, 0}: 18, {2, 0}: 18}},
	} {
		t.Run(c.gen.String(), func(t *testing.T) {
			require.Equal(t, c.rewards, seenByGen(t, record.WithGeneration(c.gen), schema.Rewards))
			require.Equal(t, c.turns, seenByGen(t, record.WithGeneration(c.gen), schema.Turns))
		})
	}
	_, err := record.WithGeneration(analysis.Numbered(3)).Visible(context.Background(), "r")
	require.ErrorIs(t, err, analysis.ErrNoGeneration)
	require.ErrorContains(t, err, "generation 3 of run r; it has 0, 1, 2")
}

func TestGenerationsAreParsed(t *testing.T) {
	for text, want := range map[string]analysis.Generation{"heads": analysis.Heads, "all": analysis.AllGenerations,
		"0": analysis.Numbered(0), "12": analysis.Numbered(12)} {
		got, err := analysis.ParseGeneration(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got)
		require.Equal(t, text, got.String())
	}
	for _, text := range []string{"", "-1", "01", "one", "1.5"} {
		_, err := analysis.ParseGeneration(text)
		require.ErrorContains(t, err, "must be heads, all or a generation's number", text)
	}
}

func TestAGenerationIsShown(t *testing.T) {
	ctx := context.Background()
	record := analysis.New(replayedRun(t))
	gens, err := record.Generations(ctx, "r", 2)
	require.NoError(t, err)
	require.Equal(t, []analysis.Generation{analysis.Heads, analysis.Numbered(1), analysis.Numbered(2)}, gens)
	gens, err = record.Generations(ctx, "r", 1)
	require.NoError(t, err)
	require.Equal(t, []analysis.Generation{analysis.Heads}, gens)

	view, err := record.WithGeneration(analysis.Numbered(1)).Step(ctx, "r", 2,
		analysis.Choice{N: 12, Group: analysis.AnyGroup})
	require.NoError(t, err)
	require.Equal(t, 3, view.Summary.Kept)
	require.InDelta(t, 1.0/3, view.Summary.Reward, 1e-12)
	var text bytes.Buffer
	require.NoError(t, view.Write(&text))
	require.True(t, strings.HasPrefix(text.String(), "run r, step 2, generation 1: 12 trajectories, mean reward 0.333"),
		text.String())
	for _, e := range view.Episodes {
		require.NotEmpty(t, e.Turns, "turns were not replayed: they are the head's")
	}
}

func TestTheOverviewSetsReplaysApart(t *testing.T) {
	ctx := context.Background()
	record := analysis.New(replayedRun(t))
	heads, err := record.Overview(ctx, "r")
	require.NoError(t, err)
	all, err := record.WithGeneration(analysis.AllGenerations).Overview(ctx, "r")
	require.NoError(t, err)
	require.Equal(t, heads.Steps, all.Steps)
	require.Empty(t, heads.Replays)
	require.Len(t, all.Replays, 2)
	for i, s := range all.Replays {
		require.Equal(t, 2, s.Step)
		require.Equal(t, i+1, s.Gen)
		require.InDelta(t, heads.Steps[1].Reward/2, s.Reward, 1e-12)
	}
	var text bytes.Buffer
	require.NoError(t, all.Write(&text))
	require.Contains(t, text.String(), "replays, which no head names\n")
}

func TestVerifyChecksReplays(t *testing.T) {
	objects := replayedRun(t)
	v := tamper.Verify(t, objects)
	require.Empty(t, v.Faults)
	require.Equal(t, []int{0, 1, 2}, v.Generations)
	ctx := context.Background()
	listed, err := objects.List(ctx, "runs/run=r/table=rewards/step=2/gen=2/")
	require.NoError(t, err)
	require.NotEmpty(t, listed)
	require.NoError(t, objects.Delete(ctx, listed[0].Key))
	v = tamper.Verify(t, objects)
	require.Equal(t, []string{"missing " + listed[0].Key}, tamper.Faults(v))
	for gen, faults := range map[int]int{0: 0, 1: 0, 2: 1} {
		of, err := v.Of(gen)
		require.NoError(t, err)
		require.Len(t, of.Faults, faults, gen)
	}
	_, err = v.Of(7)
	require.ErrorIs(t, err, analysis.ErrNoGeneration)
}
