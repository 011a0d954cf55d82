package activities_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/testing/faults"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store/mem"
)

// An interleaved run makes its batches in one activity for each step, or two with models between them, and updates and
// publishes in one. The record is that of a staged run, also if the store fails within an activity; what was committed
// before is not made again.
func TestActivitiesOfSeveralStagesAreTheStages(t *testing.T) {
	for name, set := range map[string][]string{
		"buffer": imitating,
		"models": {"steps=2", "loss.old_log_probs=recompute"},
	} {
		t.Run(name, func(t *testing.T) {
			staged := newBench(t, mem.New())
			want := trainTiny(t, staged, "r", append([]string{"rollout.mode=staged"}, set...)...)
			place, head := schema.At("r", 2, schema.StageAdvantage).ManifestKey(), schema.HeadKey("r", "2")
			objects := faults.New(mem.New(),
				faults.Rule{Op: faults.PutIfAbsent, Key: place, Nth: 1, Effect: faults.Fail},
				faults.Rule{Op: faults.PutIfAbsent, Key: head, Nth: 1, Effect: faults.Fail})
			together := newBench(t, objects)
			got := trainTiny(t, together, "r", set...)
			require.Equal(t, want.Policy.Digest, got.Policy.Digest)
			require.Equal(t, dataDigests(t.Context(), t, staged.store, "r"),
				dataDigests(t.Context(), t, together.store, "r"))
			require.Equal(t, 2, objects.Count(faults.PutIfAbsent, place), "the batch is made again")
			require.Equal(t, 2, objects.Count(faults.PutIfAbsent, head), "the head is committed again")
			for _, stage := range []string{schema.StageResample, schema.StageUpdate} {
				key := schema.At("r", 2, stage).ManifestKey()
				require.Equal(t, 1, objects.Count(faults.PutIfAbsent, key), "%s is not", stage)
			}
		})
	}
}
