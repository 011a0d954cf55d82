package analysis_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/analysis/recordtest"
	"github.com/ropewalk/ropewalk/analysis/status"
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
	faults, err := analysis.New(objects).Verify(t.Context(), "r")
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
