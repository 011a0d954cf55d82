package activities_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store/faults"
	"github.com/ropewalk/ropewalk/store/mem"
)

// A step that updates and publishes in one activity has the record of one with two, also if the store fails at the
// head. The update that was committed before is not made again.
func TestUpdateAndPublishIsTheTwoStages(t *testing.T) {
	staged := newBench(t, mem.New())
	want := trainTiny(t, staged, "r", "rollout.mode=staged", "steps=2")
	head, update := schema.HeadKey("r", "2"), schema.At("r", 2, schema.StageUpdate).ManifestKey()
	objects := faults.New(mem.New(), faults.Rule{Op: faults.PutIfAbsent, Key: head, Nth: 1, Effect: faults.Fail})
	together := newBench(t, objects)
	got := trainTiny(t, together, "r", "steps=2")
	require.Equal(t, want.Policy.Digest, got.Policy.Digest)
	require.Equal(t, dataDigests(t.Context(), t, staged.store, "r"), dataDigests(t.Context(), t, together.store, "r"))
	require.Equal(t, 2, objects.Count(faults.PutIfAbsent, head), "the head is committed again")
	require.Equal(t, 1, objects.Count(faults.PutIfAbsent, update), "the update is not")
}
