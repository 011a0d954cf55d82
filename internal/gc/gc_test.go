package gc_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/analysis/verify"
	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/internal/compaction"
	"github.com/ropewalk/ropewalk/internal/gc"
	"github.com/ropewalk/ropewalk/internal/testing/recordtest"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store"
	"github.com/ropewalk/ropewalk/store/mem"
)

var (
	start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	lost  = schema.Digest([]byte("what an attempt that lost has made"))
)

// world is a store with a clock.
type world struct {
	*mem.Store
	t   *testing.T
	now time.Time
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, now: start}
	w.Store = mem.NewAt(func() time.Time { return w.now })
	return w
}

func (w *world) put(key string) string {
	w.t.Helper()
	require.NoError(w.t, w.Put(w.t.Context(), key, []byte("lost")))
	return key
}

func (w *world) collect(o gc.Options) gc.Result {
	w.t.Helper()
	o.Now = func() time.Time { return w.now }
	if o.MinAge == 0 {
		o.MinAge = 24 * time.Hour
	}
	out, err := gc.Collect(w.t.Context(), w, o)
	require.NoError(w.t, err)
	return out
}

func (w *world) keys() map[string]bool {
	w.t.Helper()
	listed, err := w.List(w.t.Context(), "")
	require.NoError(w.t, err)
	out := map[string]bool{}
	for _, o := range listed {
		out[o.Key] = true
	}
	return out
}

func keysOf(items []gc.Item) []string {
	out := []string{}
	for _, item := range items {
		out = append(out, item.Key)
	}
	return out
}

func lostShard(place schema.Place, table schema.Table) string {
	return place.DataKey(table, lost, table.Ext())
}

// TestCollectsSettledOrphans checks that objects that losing attempts left in finished stages are deleted, and nothing
// else.
func TestCollectsSettledOrphans(t *testing.T) {
	w := newWorld(t)
	r := recordtest.Train(t, w.Store, recordtest.Options{Run: "r", Steps: 3, Planned: 9, Seed: 1, Open: true,
		SharedBase: true})
	r.Replay(1, 1)
	r.Prune(1)
	warm := strings.TrimSuffix(r.Updates[0].Checkpoint.Prefix, "/")
	warm = warm[:strings.Index(warm, "/checkpoints/")]
	before := w.keys()
	settled := []string{
		w.put(lostShard(schema.At("r", 1, schema.StageReward).WithShard(0), schema.Rewards)),
		w.put(lostShard(schema.At("r", 1, schema.StageReward).WithShard(1), schema.Selection)),
		w.put(lostShard(schema.At("r", 2, schema.StageAdvantage), schema.Batch)),
		w.put(lostShard(schema.At("r", 1, schema.StageResample).WithGen(1), schema.Selection)),
		w.put(lostShard(schema.At("r", 1, schema.StageReplay).WithGen(1), schema.Documents)),
		w.put(lostShard(schema.AtInit("r", schema.StageEvaluate), schema.Evaluations)),
		w.put(lostShard(schema.AtInit("r", schema.StageEvaluate), schema.EvaluationDebates)),
		w.put(lostShard(schema.AtInit("r", "timings_run"), schema.Timings)),
		w.put(lostShard(schema.At("r", 1, "timings_step"), schema.Timings)),
		w.put(lostShard(schema.At("r", 2, "timings_calls").WithTurn(0).WithShard(0), schema.Timings)),
		// shards record their times before the head
		w.put(lostShard(schema.At("r", 2, "timings_step").WithShard(1), schema.Timings)),
		w.put("runs/run=r/checkpoints/000002-0123456789abcdef/model.safetensors"),
		w.put("runs/run=r/checkpoints/000000-0123456789abcdef/value_head.state"),
		w.put(warm + "/checkpoints/000000-0123456789abcdef/model.safetensors"),
		w.put(".ropewalk-probe/ABC"),
	}
	open := []string{
		// the step goes on
		w.put(lostShard(schema.At("r", 3, schema.StageReward).WithShard(0), schema.Rewards)),
		// a replay to come
		w.put(lostShard(schema.At("r", 1, schema.StageReward).WithGen(2).WithShard(0), schema.Rewards)),
		w.put(lostShard(schema.At("r", 4, schema.StageEvaluate), schema.Evaluations)),
		w.put(lostShard(schema.At("r", 2, "timings_step"), schema.Timings)), // an evaluation may follow
		w.put(lostShard(schema.At("r", 3, "timings_step").WithShard(1), schema.Timings)),
		w.put(lostShard(schema.At("r", 3, "timings_calls").WithTurn(1).WithShard(0), schema.Timings)),
		w.put(lostShard(schema.AtInit("r", schema.StagePrepare), schema.Documents)),
		w.put("runs/run=r/checkpoints/000003-0123456789abcdef/model.safetensors"),
		w.put(lostShard(schema.AtWarmStart(lost), schema.Documents)),
		w.put(lostShard(schema.At("never-began", 1, schema.StagePrompts), schema.Prompts)),
	}
	unknown := w.put("runs/run=r/notes-of-mine.txt")
	request := w.put(schema.RequestKey("never-began")) // of a run that has committed nothing

	w.now = start.Add(23 * time.Hour)
	young := w.collect(gc.Options{Delete: true})
	require.Empty(t, young.Collect)
	require.ElementsMatch(t, append(append([]string{}, settled...), open...), keysOf(young.Keep))

	w.now = start.Add(25 * time.Hour)
	all := w.keys()
	plan := w.collect(gc.Options{})
	require.ElementsMatch(t, settled, keysOf(plan.Collect))
	require.ElementsMatch(t, open, keysOf(plan.Keep))
	require.Equal(t, 1, plan.Unknown)
	require.EqualValues(t, len(settled)*len("lost"), plan.Bytes())
	require.Zero(t, plan.Deleted())
	require.Equal(t, all, w.keys(), "a plan deletes nothing")

	done := w.collect(gc.Options{Delete: true})
	require.Equal(t, len(settled), done.Deleted())
	for key := range before {
		require.Contains(t, w.keys(), key)
	}
	for _, key := range append(open, unknown, request) {
		require.Contains(t, w.keys(), key)
	}
	require.Len(t, w.keys(), len(before)+len(open)+2)
	verified, err := verify.Run(t.Context(), w, "r")
	require.NoError(t, err)
	require.Empty(t, verified.Faults)

	require.ElementsMatch(t, open, keysOf(w.collect(gc.Options{Delete: true, Unfinished: true}).Collect))
	require.Len(t, w.keys(), len(before)+2)
	require.Contains(t, w.keys(), request)
	require.Empty(t, w.collect(gc.Options{Delete: true, Unfinished: true}).Collect)
}

// TestAManifestThatCannotBeReadEndsTheCollection checks that nothing is deleted then, because what the manifest names
// is not known.
func TestAManifestThatCannotBeReadEndsTheCollection(t *testing.T) {
	w := newWorld(t)
	recordtest.Train(t, w.Store, recordtest.Options{Run: "r", Steps: 1, Seed: 1})
	w.put(lostShard(schema.At("r", 1, schema.StageAdvantage), schema.Batch))
	w.now = start.Add(48 * time.Hour)
	require.NoError(t, w.Put(t.Context(), schema.At("other", 7, schema.StageUpdate).ManifestKey(), []byte("{}")))
	before := w.keys()
	_, err := gc.Collect(t.Context(), w,
		gc.Options{MinAge: time.Hour, Delete: true, Now: func() time.Time { return w.now }})
	require.ErrorContains(t, err, "other/manifests/step=7/update")
	require.Equal(t, before, w.keys())
}

// between calls a function before the nth listing of all objects.
type between struct {
	store.Store
	n    int
	call func()
}

func (b *between) List(ctx context.Context, prefix string) ([]store.Object, error) {
	if prefix == "runs/run=" {
		if b.n--; b.n == 0 {
			b.call()
		}
	}
	return b.Store.List(ctx, prefix)
}

// TestWhatChangesBetweenPlanAndDelete checks that an orphan is kept if, after the plan, a manifest names it, it is put
// again, or its step is to be run again.
func TestWhatChangesBetweenPlanAndDelete(t *testing.T) {
	place := schema.At("r", 1, schema.StageAdvantage)
	for name, change := range map[string]func(w *world, key string){
		"it has been put again": func(w *world, key string) { w.put(key) },
		"it has disappeared":    func(w *world, key string) { require.NoError(w.t, w.Delete(w.t.Context(), key)) },
		"a manifest has named it": func(w *world, key string) {
			// The commit protocol never does this in a settled place.
			m := schema.NewManifest(place.WithTry(5), lost, lost)
			m.Shards = []schema.ShardInfo{{Key: key, Table: schema.Batch, Digest: lost, Bytes: 4, Rows: 1}}
			data, err := schema.EncodeManifest(m)
			require.NoError(w.t, err)
			require.NoError(w.t, w.PutIfAbsent(w.t.Context(), m.ManifestKey(), data))
		},
		"its step is not done": func(w *world,
			_ string) {
			require.NoError(w.t, w.Delete(w.t.Context(), schema.HeadKey("r", "1")))
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			recordtest.Train(t, w.Store, recordtest.Options{Run: "r", Steps: 1, Seed: 1})
			key := w.put(lostShard(place, schema.Batch))
			w.now = start.Add(48 * time.Hour)
			seen := &between{Store: w, n: 2, call: func() { change(w, key) }}
			out, err := gc.Collect(t.Context(), seen,
				gc.Options{MinAge: time.Hour, Delete: true, Now: func() time.Time { return w.now }})
			require.NoError(t, err)
			require.Empty(t, out.Collect)
			require.Len(t, out.Keep, 1)
			require.Contains(t, out.Keep[0].Why, name, fmt.Sprint(out.Keep))
		})
	}
}

// TestTimesThatAShardHasRecordedAreNamed checks that objects named by a shard's manifest of measured times stay.
func TestTimesThatAShardHasRecordedAreNamed(t *testing.T) {
	w := newWorld(t)
	recordtest.Train(t, w.Store, recordtest.Options{Run: "r", Steps: 1, Seed: 1})
	place := schema.At("r", 1, "timings_step").WithShard(0)
	record := commit.New(w.Store)
	ended := int64(1)
	rows := []schema.TimingRow{
		{Stage: schema.StageRollout, Kind: "activity", Call: -1, Host: "host", EndMicros: &ended},
	}
	info, err := commit.PutRows(t.Context(), record, place, rows)
	require.NoError(t, err)
	m := schema.NewManifest(place, lost, lost)
	m.Shards = []schema.ShardInfo{info}
	_, _, _, err = record.Commit(t.Context(), m)
	require.NoError(t, err)
	orphan := w.put(lostShard(place, schema.Timings))
	w.now = start.Add(48 * time.Hour)
	require.Equal(t, []string{orphan}, keysOf(w.collect(gc.Options{Delete: true}).Collect))
	require.Contains(t, w.keys(), info.Key)
}

// TestMergedCopiesAreCollectedOnlyOnceTheirStepIsCompacted checks files under compact/: what a compaction names stays,
// and what an attempt has left goes once the step's compaction is committed.
func TestMergedCopiesAreCollectedOnlyOnceTheirStepIsCompacted(t *testing.T) {
	w := newWorld(t)
	recordtest.Train(t, w, recordtest.Options{Run: "r", Steps: 2, Seed: 1})
	orphan := w.put(schema.At("r", 1, schema.StageCompact).DataKey(schema.Turns, lost, "parquet"))
	w.now = w.now.Add(48 * time.Hour)
	o := gc.Options{Delete: true}
	w.collect(o)
	require.True(t, w.keys()[orphan], "a compaction may still come to name it")

	require.NoError(t, compaction.Run(t.Context(), commit.New(w), "r", lost, func(int, compaction.Result) {}))
	before := w.keys()
	w.now = w.now.Add(48 * time.Hour)
	w.collect(o)
	delete(before, orphan)
	require.Equal(t, before, w.keys(), "only the orphan is deleted: shards and copies stay")
}
