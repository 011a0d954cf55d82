package gc_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/internal/gc"
	"github.com/ropewalk/ropewalk/schema"
)

// commit commits a manifest with a checkpoint and inputs.
func (w *world) commit(place schema.Place, inputs ...schema.Ref) schema.Ref {
	w.t.Helper()
	file := schema.CheckpointFile{Name: "model.safetensors", Digest: schema.Digest([]byte("lost")), Bytes: 4}
	m := schema.NewManifest(place, lost, lost)
	m.Inputs = inputs
	m.Checkpoint = &schema.Checkpoint{Digest: lost, Weights: lost, Files: []schema.CheckpointFile{file}}
	m.Checkpoint.Prefix = place.CheckpointPrefix(fmt.Sprintf("%06d-%.16s", len(w.keys()), lost))
	w.put(m.Checkpoint.Key(file))
	m.Shards = nil
	_, ref, _, err := commit.New(w.Store).Commit(w.t.Context(), m)
	require.NoError(w.t, err)
	return ref
}

// two commits a run "r" from two warm starts, with a request and states, and a run "e" that measures its policy after
// step 2 and begins with one of the warm starts. It returns what is kept of r for e.
func (w *world) two() (kept []string) {
	w.t.Helper()
	own, both := schema.AtWarmStart(strings.Repeat("a", 64)), schema.AtWarmStart(strings.Repeat("b", 64))
	a, b := w.commit(own), w.commit(both)
	w.commit(schema.AtInit("r", schema.StageWarmStart), a, b)
	w.commit(schema.At("r", 1, schema.StageUpdate))
	before := w.keys()
	measured := w.commit(schema.At("r", 2, schema.StageUpdate))
	for key := range w.keys() {
		if !before[key] {
			kept = append(kept, key)
		}
	}
	w.commit(schema.At("e", 2, schema.StageEvaluate), measured)
	w.commit(schema.AtInit("e", schema.StageWarmStart), b)
	for _, run := range []string{"r", "e", "r2"} {
		w.put(schema.CatalogueKey(run))
		w.put(schema.RequestKey(run))
		w.put(schema.StateKey(run, schema.NewStateNote(schema.StateFailed, "", "", start)))
		w.put(schema.RunPrefix(run) + "calls/x/note.json")
	}
	return kept
}

// Everything of a run is deleted but what others name, and nothing of others.
func TestARunIsDeleted(t *testing.T) {
	w := newWorld(t)
	kept, before := w.two(), w.keys()
	planned, err := gc.DeleteRun(t.Context(), w, "r", gc.Removal{WarmStarts: true})
	require.NoError(t, err)
	require.Equal(t, before, w.keys(), "it is only counted")
	out, err := gc.DeleteRun(t.Context(), w, "r", gc.Removal{WarmStarts: true, Delete: true})
	require.NoError(t, err)
	require.Equal(t, planned, out)
	require.Equal(t, []string{"e"}, out.For)
	require.Len(t, kept, out.Kept, "the manifest that e was made from, and its checkpoint")
	require.Equal(t, 1, out.WarmStarts)
	after := w.keys()
	require.Equal(t, out.Objects, len(before)-len(after))
	for key := range before {
		gone := strings.HasPrefix(key, schema.RunPrefix("r")) && !slices.Contains(kept, key) ||
			key == schema.CatalogueKey("r") || key == schema.RequestKey("r") || strings.HasPrefix(key, "states/r/") ||
			strings.HasPrefix(key, "warmstarts/aaaa")
		require.Equal(t, !gone, after[key], key)
	}
	again, err := gc.DeleteRun(t.Context(), w, "r", gc.Removal{WarmStarts: true, Delete: true})
	require.NoError(t, err)
	require.Zero(t, again.Objects)

	_, err = gc.DeleteRun(t.Context(), w, "e", gc.Removal{WarmStarts: true, Delete: true})
	require.NoError(t, err)
	last, err := gc.DeleteRun(t.Context(), w, "r", gc.Removal{WarmStarts: true, Delete: true})
	require.NoError(t, err)
	require.Equal(t, 2, last.Objects, "no one needs it any more")
	require.Zero(t, last.Kept)
}

// What an interrupted deletion has left is collected, unless a run has begun again under the name.
func TestTheRestOfADeletedRunIsCollected(t *testing.T) {
	w := newWorld(t)
	shard := w.put(lostShard(schema.At("r", 1, schema.StageReward).WithShard(0), schema.Rewards))
	w.now = w.now.Add(48 * time.Hour)
	require.Empty(t, w.collect(gc.Options{}).Collect)
	deed := schema.NewDeed(schema.DeedDelete, "", "ada", "host", w.now)
	text, err := schema.Canonical(deed)
	require.NoError(t, err)
	require.NoError(t, w.Put(t.Context(), schema.DeedKey("r", deed, "x"), text))
	w.put(schema.RequestKey("r"))
	require.Empty(t, w.collect(gc.Options{}).Collect)
	require.NoError(t, w.Delete(t.Context(), schema.RequestKey("r")))
	require.Equal(t, []string{shard}, keysOf(w.collect(gc.Options{Delete: true}).Collect))
}
