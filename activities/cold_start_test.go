package activities_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/analysis/verify"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store/mem"
)

// A warm start on the form of calls makes calls valid and solves nothing, and the record says both: the policy before
// it is measured on the same held-out problems. The comparison and verify read the rows.
func TestColdStart(t *testing.T) {
	objects := mem.New()
	b := newBench(t, objects)
	form := []string{"steps=1", "warm_start.demonstrations={form: true}", "warm_start.steps=80", "warm_start.batch=24"}
	trainTiny(t, b, "r", form...)
	record := analysis.New(objects)
	c, err := record.ColdStart(t.Context(), "r")
	require.NoError(t, err)
	require.NotNil(t, c)
	require.Zero(t, c.Before.Calls.Rate.Success, "random weights write no call")
	require.Zero(t, c.Before.Success.Success)
	require.Equal(t, []int{3, 3}, []int{c.Before.Calls.Rate.N, c.After.Calls.Rate.N})
	require.Greater(t, c.After.Calls.Rate.Success, 0.5)
	require.Positive(t, c.After.Calls.Valid)
	require.True(t, c.Unchanged())

	v, err := verify.Run(t.Context(), record.Store(), "r")
	require.NoError(t, err)
	require.Empty(t, v.Faults, "%v", v.Faults)
	checked(t, objects, "r")
	// No reader takes its rows for the first policy's, and a second run reuses both policies.
	overview, err := record.Overview(t.Context(), "r")
	require.NoError(t, err)
	require.Len(t, overview.Evaluations, 2)
	trainTiny(t, b, "again", form...)
	for _, stage := range []string{schema.StageInitial, schema.StageWarmStart} {
		of := map[string][]schema.Ref{}
		for _, run := range []string{"r", "again"} {
			m, _, found, err := b.record.Lookup(t.Context(), schema.AtInit(run, stage))
			require.NoError(t, err)
			require.True(t, found)
			of[run] = m.Inputs[1:]
		}
		require.Equal(t, of["r"], of["again"], stage)
	}
	trainTiny(t, b, "taught", "steps=1")
	c, err = record.ColdStart(t.Context(), "taught")
	require.NoError(t, err)
	require.Nil(t, c)

	forged, _, _, err := b.record.Lookup(t.Context(), schema.AtInit("r", schema.StageInitial))
	require.NoError(t, err)
	forged.Stats["success"] += 0.5
	data, err := schema.EncodeManifest(forged)
	require.NoError(t, err)
	require.NoError(t, objects.Put(t.Context(), forged.ManifestKey(), data))
	v, err = verify.Run(t.Context(), objects, "r")
	require.NoError(t, err)
	require.True(t, slices.ContainsFunc(v.Faults, func(f verify.Fault) bool {
		return f.Key == forged.ManifestKey() && strings.Contains(f.Message, "success")
	}), v.Faults)
}
