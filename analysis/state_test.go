package analysis_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/analysis/status"
	"github.com/ropewalk/ropewalk/analysis/verify"
	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/internal/testing/recordtest"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store"
	"github.com/ropewalk/ropewalk/store/mem"
)

// A run that a person stopped is finished: its last evaluation is the one after the step it stopped at.
func TestAStoppedRunIsFinished(t *testing.T) {
	t.Parallel()
	objects := mem.New()
	recordtest.Train(t, objects, recordtest.Options{Run: "r", Steps: 2, Planned: 5, Seed: 1, Stopped: true})
	run, err := analysis.New(objects).Run(t.Context(), "r")
	require.NoError(t, err)
	require.Equal(t, status.Status{State: status.StoppedEarly}, run.State())
	require.Equal(t, "2/2", run.Progress())
	require.Equal(t, 5, run.Steps, "what the recipe asked for")
	require.InDelta(t, 0.75, *run.After, 1e-12)
	overview, err := analysis.New(objects).Overview(t.Context(), "r")
	require.NoError(t, err)
	require.Equal(t, "final", overview.Evaluations[1].Tag)
	faults, err := verify.Run(t.Context(), objects, "r")
	require.NoError(t, err)
	require.Empty(t, faults.Faults)
}

// Readers who ask no server take an unfinished run's state from its latest note; a server's answer comes first.
func TestAnUnfinishedRunsStatus(t *testing.T) {
	t.Parallel()
	objects := mem.New()
	recordtest.Train(t, objects, recordtest.Options{Run: "r", Steps: 2, Planned: 5, Seed: 1})
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	note(t, objects, "r", schema.NewStateNote("running", "", "", at))
	note(t, objects, "r", schema.NewStateNote("parked", "no_space", "update: disk full", at.Add(time.Minute)))
	note(t, objects, "r2", schema.NewStateNote("failed", "", "", at.Add(time.Hour)))

	of := func(o analysis.Observed) status.Status {
		run, err := analysis.New(objects).WithServer(o).Run(t.Context(), "r")
		require.NoError(t, err)
		return run.State()
	}
	parked := status.Status{State: status.Parked, Kind: "no_space", Reason: "update: disk full"}
	require.Equal(t, parked, of(analysis.Observed{}))
	require.Equal(t, parked, of(analysis.Observed{Server: status.Stopped}))
	require.Equal(t, status.Status{State: status.Interrupted}, of(analysis.Observed{Server: status.Asked}))
	require.Equal(t, status.Status{State: status.Running}, of(analysis.Observed{Server: status.Asked,
		Workflows: map[string]status.Workflow{"r": {Stage: "step"}}}))
}

func note(t *testing.T, objects store.Store, run string, n schema.StateNote) {
	t.Helper()
	text, err := schema.Canonical(n)
	require.NoError(t, err)
	require.NoError(t, objects.PutIfAbsent(t.Context(), schema.StateKey(run, n), text))
}

// An open evaluation of its own takes no steps: it has the problems of its committed shards behind it.
func TestAnOpenEvaluationCountsItsProblems(t *testing.T) {
	t.Parallel()
	objects := mem.New()
	writer := commit.New(objects)
	document := map[string]any{"steps": 1, "evaluation": map[string]any{"problems": 60, "samples": 4, "greedy": true}}
	place := schema.AtInit("e", schema.StagePrepare)
	m := schema.NewManifest(place, recordtest.Code, schema.Digest(nil))
	info, err := commit.PutDocument(t.Context(), writer, place, document)
	require.NoError(t, err)
	m.Shards, m.Note = []schema.ShardInfo{info}, map[string]string{schema.NoteEvaluates: `{"digest":"d"}`}
	_, _, _, err = writer.Commit(t.Context(), m)
	require.NoError(t, err)
	entry, err := schema.Canonical(map[string]any{"run": "e", "steps": 1})
	require.NoError(t, err)
	require.NoError(t, objects.PutIfAbsent(t.Context(), schema.CatalogueKey("e"), entry))
	progress := func() string {
		run, err := analysis.New(objects).Run(t.Context(), "e")
		require.NoError(t, err)
		require.True(t, run.Measures())
		require.Equal(t, "–", run.SuccessWords())
		return run.Progress()
	}
	require.Equal(t, "0/60 problems", progress())
	for shard, stats := range []map[string]float64{{schema.StatRows: 40},
		{schema.StatRows: 17, schema.StatExcluded: 3}} {
		at := schema.At("e", 1, schema.StageEvaluate).WithShard(shard)
		m := schema.NewManifest(at, recordtest.Code, schema.Digest(nil))
		m.Stats = stats
		_, _, _, err := writer.Commit(t.Context(), m)
		require.NoError(t, err)
	}
	require.Equal(t, "12/60 problems", progress(), "three broken episodes have no row")

	asked := analysis.New(objects).Queued(schema.Request{Workflow: "EvaluateRun",
		CatalogueEntry: schema.CatalogueEntry{Run: "q", Steps: 1}})
	require.Equal(t, "–", asked.Progress(), "what its recipe asks for is not resolved yet")
}
