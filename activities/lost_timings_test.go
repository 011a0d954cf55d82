package activities_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/analysis/verify"
	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store"
	"github.com/ropewalk/ropewalk/store/mem"
	"github.com/ropewalk/ropewalk/workflows"
)

// timedIn returns which executions of a step have measured times, and whether those are of an adoption.
func timedIn(t *testing.T, objects store.Store, step int) map[string]bool {
	t.Helper()
	m := manifestAt(t, objects, schema.At("r", step, "timings_step"))
	rows, err := commit.Rows[schema.TimingRow](t.Context(), commit.New(objects), m)
	require.NoError(t, err)
	out := map[string]bool{}
	for _, r := range rows {
		require.Positive(t, r.StartMicros)
		require.NotEmpty(t, r.Host)
		at := schema.At("r", step, r.Stage).WithTurn(int(r.Turn)).WithShard(int(r.Shard))
		out[at.ManifestKey()] = r.Adopted != nil
	}
	return out
}

// Measured times and merged copies are made alongside the next step. A run that was ended before is resumed, and makes
// up for both, in both modes; other bytes stay as they are.
func TestAResumedRunRecordsLostTimesAndMergesShards(t *testing.T) {
	for _, mode := range []string{"interleaved", "staged"} {
		t.Run(mode, func(t *testing.T) {
			whole := mem.New()
			trainTiny(t, newBench(t, whole), "r", "steps=2", "record.compact=true", "rollout.mode="+mode)
			ended := rewound(t, whole, 1, false)
			for _, stage := range []string{"timings_step", schema.StageCompact} {
				require.NoError(t, ended.Delete(t.Context(), schema.At("r", 1, stage).ManifestKey()))
			}
			_, err := newBench(t, ended).train(t, workflows.TrainRunInput{Run: "r", Resume: true})
			require.NoError(t, err)
			want, got := timedIn(t, whole, 1), timedIn(t, ended, 1)
			require.Equal(t, slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(got)))
			for key := range want {
				require.False(t, want[key], key)
				require.True(t, got[key], key)
			}
			manifestAt(t, ended, schema.At("r", 1, schema.StageCompact))
			end := manifestAt(t, ended, schema.At("r", 2, schema.StageEnd))
			require.Equal(t, manifestAt(t, whole, schema.At("r", 2, schema.StageEnd)), end)
			evaluated := schema.At("r", 2, schema.StageEvaluate).ManifestKey()
			require.Equal(t, evaluated, end.Inputs[len(end.Inputs)-1].Key, "the end names the last evaluation")
			v, err := verify.Run(t.Context(), ended, "r")
			require.NoError(t, err)
			require.Empty(t, v.Faults)
		})
	}
}
