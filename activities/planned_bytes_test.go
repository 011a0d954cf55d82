package activities_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/gpu/plan"
	"github.com/ropewalk/ropewalk/internal/planning"
	"github.com/ropewalk/ropewalk/policy/checkpoint"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store/mem"
	"github.com/ropewalk/ropewalk/workflows"
)

// A plan's bytes bound those that a run writes: a checkpoint to within its headers, and the tables of its steps from
// above, but not by more than compression and unused budgets explain.
func TestPlannedBytes(t *testing.T) {
	keepsAll := slices.DeleteFunc(slices.Clone(small), func(s string) bool { return strings.HasPrefix(s, "resample.") })
	keepsAll = append(keepsAll, "resample.roc=null", "resample.vspo=null") // so that every step updates
	b := newBench(t, mem.New())
	trained, err := b.train(t, workflows.TrainRunInput{Run: "a", Recipe: "quickstart", Set: keepsAll})
	require.NoError(t, err)
	resolved, err := recipes.Resolve("quickstart", "", keepsAll, nil, nil)
	require.NoError(t, err)
	objects, err := b.store.List(t.Context(), schema.RunPrefix("a"))
	require.NoError(t, err)
	var tables int64
	for _, o := range objects {
		key := strings.TrimPrefix(o.Key, schema.RunPrefix("a"))
		of := strings.Contains(key, "/step=1/") || strings.Contains(key, "/step=2/")
		if of && strings.HasPrefix(key, "table=") && !strings.HasPrefix(key, "table=evaluation") {
			tables += o.Size
		}
	}
	planned := 2 * planning.RowBytes(&resolved.Recipe)
	t.Logf("tables of two steps: %d bytes, planned at most %d", tables, planned)
	require.Positive(t, tables)
	require.LessOrEqual(t, tables, planned)
	require.Greater(t, 40*tables, planned)

	m, err := b.record.Read(t.Context(), trained.Policy.Manifest)
	require.NoError(t, err)
	var config []byte
	var written int64
	for _, f := range m.Checkpoint.Files {
		if f.Name == checkpoint.FileConfig {
			config, err = b.store.Get(t.Context(), m.Checkpoint.Key(f))
			require.NoError(t, err)
		}
		if f.Name == checkpoint.FileWeights || f.Name == checkpoint.FileOptimizer {
			written += f.Bytes
		}
	}
	shape, err := checkpoint.ParseConfig(config)
	require.NoError(t, err)
	each, base := planning.CheckpointBytes(&resolved.Recipe, plan.Of(shape))
	require.Zero(t, base)
	t.Logf("checkpoint: %d bytes, planned %d", written, each)
	require.InDelta(t, each, written, 16<<10)
}
