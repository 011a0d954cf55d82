package analysis_test

import (
	"bytes"
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/analysis/verify"
	"github.com/ropewalk/ropewalk/internal/testing/recordtest"
	"github.com/ropewalk/ropewalk/internal/testing/tamper"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store/mem"
)

// excluding makes a run of two steps: in the first the engine broke on one trajectory that would
// have been right, in the second the last shard was skipped.
func excluding(t *testing.T) *mem.Store {
	t.Helper()
	objects := mem.New()
	recordtest.Train(t, objects, recordtest.Options{
		Run: "r", Steps: 2, Seed: 1, Skipped: 2,
		Broken: map[string]string{schema.TrajectoryID(1, 0, 0): "engine: panicked: index out of range"},
	})
	return objects
}

func TestVerifyUnderstandsExclusions(t *testing.T) {
	v := tamper.Verify(t, excluding(t))
	require.Empty(t, v.Faults)
	require.Equal(t, 2, v.Heads)
}

func TestVerifyMissesTrajectories(t *testing.T) {
	for _, c := range []struct {
		name, text string
		change     func(m *schema.Manifest)
	}{
		{"no shard was skipped", "no shard was skipped",
			func(m *schema.Manifest) { delete(m.Note, schema.NoteExcludedShards) }},
		{"a selection without rows", "commits 0 rows of table selection for 8 rewards",
			func(m *schema.Manifest) { m.Shards = nil }},
	} {
		t.Run(c.name, func(t *testing.T) {
			objects := excluding(t)
			key := schema.At("r", 2, schema.StageResample).ManifestKey()
			m, err := schema.DecodeManifest(tamper.Get(t, objects, key))
			require.NoError(t, err)
			c.change(&m)
			data, err := schema.EncodeManifest(m)
			require.NoError(t, err)
			tamper.Put(t, objects, key, data)
			var texts []string
			for _, f := range tamper.Verify(t, objects).Faults {
				if f.Kind == verify.FaultRows {
					require.Equal(t, key, f.Key)
					texts = append(texts, f.Message)
				}
			}
			require.NotEmpty(t, texts)
			require.Contains(t, texts[0], c.text)
		})
	}
}

func TestExcludedTrajectoriesAreInNoMean(t *testing.T) {
	record := analysis.New(excluding(t))
	overview, err := record.Overview(context.Background(), "r")
	require.NoError(t, err)
	// Step 1: sample 0 of groups 0 and 1 and all of group 2 are right; one of them is gone.
	require.Equal(t, 11, overview.Steps[0].Trajectories)
	require.Equal(t, 1, overview.Steps[0].Excluded)
	require.InDelta(t, 5.0/11, overview.Steps[0].Reward, 1e-12)
	require.InDelta(t, 5.0/11, overview.Steps[0].Success, 1e-12)
	require.Equal(t, 8, overview.Steps[1].Trajectories)
	require.Equal(t, recordtest.Samples, overview.Steps[1].Excluded)
	require.InDelta(t, 0.5, overview.Steps[1].Reward, 1e-12)
	var text bytes.Buffer
	require.NoError(t, overview.Write(&text))
	require.Contains(t, text.String(), "  4 excluded\n")

	figures, err := record.Figures(context.Background(), "r")
	require.NoError(t, err)
	require.EqualValues(t, 1+recordtest.Samples, figures.Excluded)
	require.EqualValues(t, 12+8, figures.Trajectories)
}

func TestShowSaysWhyATrajectoryWasExcluded(t *testing.T) {
	record := analysis.New(excluding(t))
	shown := func(step, group int) string {
		view, err := record.Step(context.Background(), "r", step, analysis.Choice{N: 12, Group: group})
		require.NoError(t, err)
		var text bytes.Buffer
		require.NoError(t, view.Write(&text))
		return text.String()
	}
	first := shown(1, 0)
	require.Contains(t, first, "excluded 1 more: they have no reward and no mean includes them\n")
	require.Contains(t, first, "1 excluded")
	require.Contains(t, first, "── trajectory 00001/0000/000 · no reward · excluded: engine: panicked: index out of "+
		"range\n")
	require.Contains(t, first, "             (no response: engine: panicked: index out of range)\n")
	skipped := shown(2, 2)
	require.Contains(t, skipped, "── trajectory 00002/0002/000 · no reward · excluded: shard 1 was skipped after "+
		"its sandbox failed")
	require.Contains(t, skipped, "end        it was not assembled\n")
}
