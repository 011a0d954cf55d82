package activities_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store/faults"
	"github.com/ropewalk/ropewalk/store/mem"
)

// An interleaved run makes its batches in one activity for each step, or two with models between them. The record is
// that of a staged run, also if the store fails within the activity; what was committed before is not made again.
func TestTheBatchOfOneActivityIsTheStages(t *testing.T) {
	for name, set := range map[string][]string{
		"plain":  {"steps=2"},
		"buffer": imitating,
		"models": {"steps=2", "loss.old_log_probs=recompute"},
	} {
		t.Run(name, func(t *testing.T) {
			staged := newBench(t, mem.New())
			want := trainTiny(t, staged, "r", append([]string{"rollout.mode=staged"}, set...)...)
			place := schema.At("r", 2, schema.StageAdvantage).ManifestKey()
			objects := faults.New(mem.New(), faults.Rule{Op: faults.PutIfAbsent, Key: place, Nth: 1,
				Effect: faults.Fail})
			together := newBench(t, objects)
			got := trainTiny(t, together, "r", set...)
			require.Equal(t, want.Policy.Digest, got.Policy.Digest)
			require.Equal(t, dataDigests(t.Context(), t, staged.store, "r"),
				dataDigests(t.Context(), t, together.store, "r"))
			require.Equal(t, 2, objects.Count(faults.PutIfAbsent, place), "the batch is made again")
			selection := schema.At("r", 2, schema.StageResample).ManifestKey()
			require.Equal(t, 1, objects.Count(faults.PutIfAbsent, selection), "the selection is not")
		})
	}
}
