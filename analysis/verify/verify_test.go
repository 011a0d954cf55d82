package verify_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/analysis/verify"
	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/internal/testing/recordtest"
	"github.com/ropewalk/ropewalk/internal/testing/tamper"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store"
	"github.com/ropewalk/ropewalk/store/mem"
)

// pointHead makes the head of a manifest's step name it in place of its stage's manifests, and
// nothing of the stages without.
func pointHead(t *testing.T, objects store.Store, manifest schema.Ref, without ...string) {
	t.Helper()
	place, err := schema.ParseManifestKey(manifest.Key)
	require.NoError(t, err)
	head, err := schema.DecodeHead(tamper.Get(t, objects, schema.HeadKey(place.Run, place.Step)))
	require.NoError(t, err)
	head.Stages[place.Stage], head.Generations[place.Stage] = []schema.Ref{manifest}, place.Gen
	for _, stage := range without {
		delete(head.Stages, stage)
		delete(head.Generations, stage)
	}
	data, err := schema.EncodeHead(head)
	require.NoError(t, err)
	tamper.Put(t, objects, head.Key(), data)
}

func first(t *testing.T, objects store.Store, prefix string) string {
	t.Helper()
	listed, err := objects.List(context.Background(), prefix)
	require.NoError(t, err)
	require.NotEmpty(t, listed, prefix)
	return listed[0].Key
}

func TestVerifyAWholeRun(t *testing.T) {
	objects := mem.New()
	recordtest.Train(t, objects, recordtest.Options{Run: "r", Steps: 2, Seed: 1})
	v := tamper.Verify(t, objects)
	require.Empty(t, v.Faults)
	// init: prepare, warm start, evaluate, timings; the warm start outside the run. A step: 3 single stages before and
	// after the sharded stages, 5 sharded stages with 2 shards each, 2 timings of calls, timings. After the last:
	// evaluate, end, timings.
	require.Equal(t, 5+2*(5+5*3+2+1)+3, v.Manifests)
	require.Equal(t, 2, v.Heads)
	require.Equal(t, 3, v.Checkpoints)
	require.Zero(t, v.Orphans)
	require.Zero(t, v.Pruned)
	require.Positive(t, v.Bytes)
	// A step: 3 prompts, 18 turns, 6 calls and their timings, 12 trajectories, rewards and selections,
	// 6 batch rows, 2 updates, 15 timings. Around: 2 documents, 2 evaluations of 8, 3 timings.
	require.EqualValues(t, 2*(3+18+6+6+12*3+6+2+15)+2+16+3, v.Rows)
}

func TestVerifyAStepInProgress(t *testing.T) {
	objects := mem.New()
	recordtest.Train(t, objects, recordtest.Options{Run: "r", Steps: 2, Planned: 9, Seed: 1, Open: true})
	v := tamper.Verify(t, objects)
	require.Empty(t, v.Faults)
	require.Equal(t, 1, v.Heads)
}

func TestVerifyNamesTheFault(t *testing.T) {
	reward := schema.At("r", 1, schema.StageReward)
	for _, c := range []struct {
		name string
		harm func(t *testing.T, objects *mem.Store, r *recordtest.Run) (want []string)
	}{
		{"a shard is missing", func(t *testing.T, objects *mem.Store, _ *recordtest.Run) []string {
			key := first(t, objects, "runs/run=r/table=turns/step=1/")
			require.NoError(t, objects.Delete(context.Background(), key))
			return []string{"missing " + key}
		}},
		{"a shard is damaged", func(t *testing.T, objects *mem.Store, _ *recordtest.Run) []string {
			key := first(t, objects, "runs/run=r/table=batch/step=2/")
			data := tamper.Get(t, objects, key)
			data[len(data)/2] ^= 1
			tamper.Put(t, objects, key, data)
			return []string{"damaged " + key}
		}},
		{"a shard is cut", func(t *testing.T, objects *mem.Store, _ *recordtest.Run) []string {
			key := first(t, objects, "runs/run=r/table=rewards/step=2/")
			tamper.Put(t, objects, key, tamper.Get(t, objects, key)[:100])
			return []string{"damaged " + key}
		}},
		{"a manifest is damaged", func(t *testing.T, objects *mem.Store, _ *recordtest.Run) []string {
			key := schema.At("r", 2, schema.StageResample).ManifestKey()
			tamper.Put(t, objects, key, []byte("{}"))
			return []string{"damaged " + key}
		}},
		{"a part is missing", func(t *testing.T, objects *mem.Store, _ *recordtest.Run) []string {
			key := reward.WithShard(1).ManifestKey()
			require.NoError(t, objects.Delete(context.Background(), key))
			return []string{"missing " + key}
		}},
		{"a manifest was replaced by another valid one",
			func(t *testing.T, objects *mem.Store, _ *recordtest.Run) []string {
				key := reward.WithShard(0).ManifestKey()
				m, err := schema.DecodeManifest(tamper.Get(t, objects, key))
				require.NoError(t, err)
				m.Stats = map[string]float64{"changed": 1}
				data, err := schema.EncodeManifest(m)
				require.NoError(t, err)
				tamper.Put(t, objects, key, data)
				return []string{"lineage " + key}
			}},
		{"a manifest says more rows than there are",
			func(t *testing.T, objects *mem.Store, _ *recordtest.Run) []string {
				key := schema.At("r", 2, "timings_run").ManifestKey() // nothing is made from it
				m, err := schema.DecodeManifest(tamper.Get(t, objects, key))
				require.NoError(t, err)
				m.Shards[0].Rows++
				data, err := schema.EncodeManifest(m)
				require.NoError(t, err)
				tamper.Put(t, objects, key, data)
				return []string{"rows " + m.Shards[0].Key}
			}},
		{"a manifest was made under another recipe",
			func(t *testing.T, objects *mem.Store, _ *recordtest.Run) []string {
				key := schema.At("r", 2, "timings_run").ManifestKey()
				m, err := schema.DecodeManifest(tamper.Get(t, objects, key))
				require.NoError(t, err)
				m.Config = schema.Digest([]byte("another"))
				data, err := schema.EncodeManifest(m)
				require.NoError(t, err)
				tamper.Put(t, objects, key, data)
				return []string{"config " + key}
			}},
		{"the first head is missing", func(t *testing.T, objects *mem.Store, _ *recordtest.Run) []string {
			key := schema.HeadKey("r", "1")
			require.NoError(t, objects.Delete(context.Background(), key))
			return []string{"missing " + key}
		}},
		{"a head is damaged", func(t *testing.T, objects *mem.Store, _ *recordtest.Run) []string {
			key := schema.HeadKey("r", "2")
			tamper.Put(t, objects, key, []byte("{"))
			return []string{"damaged " + key}
		}},
		{"the warm start is missing", func(t *testing.T, objects *mem.Store, _ *recordtest.Run) []string {
			key := first(t, objects, "warmstarts/")
			for !strings.HasSuffix(key, "manifest.json") {
				listed, err := objects.List(context.Background(), key[:len("warmstarts/")+64]+"/manifest.json")
				require.NoError(t, err)
				key = listed[0].Key
			}
			require.NoError(t, objects.Delete(context.Background(), key))
			return []string{"missing " + key}
		}},
		{"a checkpoint's file is missing", func(t *testing.T, objects *mem.Store, r *recordtest.Run) []string {
			key := r.Updates[1].Checkpoint.Prefix + "model.safetensors"
			require.NoError(t, objects.Delete(context.Background(), key))
			return []string{"missing " + key}
		}},
		{"a checkpoint's file is damaged", func(t *testing.T, objects *mem.Store, r *recordtest.Run) []string {
			key := r.Updates[0].Checkpoint.Prefix + "config.json"
			tamper.Put(t, objects, key, []byte("[]\n"))
			return []string{"damaged " + key}
		}},
		{"a checkpoint's file has a byte too many", func(t *testing.T, objects *mem.Store, r *recordtest.Run) []string {
			key := r.Updates[0].Checkpoint.Prefix + "model.safetensors"
			data, err := objects.Get(context.Background(), key)
			require.NoError(t, err)
			tamper.Put(t, objects, key, append(data, 0))
			return []string{"damaged " + key}
		}},
		{"a checkpoint's file is cut short", func(t *testing.T, objects *mem.Store, r *recordtest.Run) []string {
			key := r.Updates[0].Checkpoint.Prefix + "model.safetensors"
			data, err := objects.Get(context.Background(), key)
			require.NoError(t, err)
			tamper.Put(t, objects, key, data[:len(data)-1])
			return []string{"damaged " + key}
		}},
		{"the checkpoint to go on from is pruned", func(t *testing.T, _ *mem.Store, r *recordtest.Run) []string {
			r.Prune(2)
			return []string{"pruned " + r.Updates[2].Checkpoint.Prefix + "pruned.json"}
		}},
		{"the note of another checkpoint", func(t *testing.T, objects *mem.Store, r *recordtest.Run) []string {
			r.Prune(1)
			key := r.Updates[1].Checkpoint.Prefix + "pruned.json"
			note, err := schema.Canonical(map[string]any{"checkpoint": r.Updates[2].Checkpoint})
			require.NoError(t, err)
			tamper.Put(t, objects, key, note)
			return []string{"lineage " + key}
		}},
		{"an unknown name among the manifests", func(t *testing.T, objects *mem.Store, _ *recordtest.Run) []string {
			key := schema.ManifestsPrefix("r") + "step=1/reward/gen=00.json"
			tamper.Put(t, objects, key, []byte("{}"))
			return []string{"damaged " + key}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			objects := mem.New()
			r := recordtest.Train(t, objects, recordtest.Options{Run: "r", Steps: 2, Seed: 1})
			want := c.harm(t, objects, r)
			v := tamper.Verify(t, objects)
			require.Equal(t, want, tamper.Faults(v))
			for _, f := range v.Faults {
				require.NotEmpty(t, f.Message)
				require.NotEmpty(t, f.Kind.Advice())
			}
		})
	}
}

// A stage that was made from rows which the head does not name is a broken lineage, though every
// manifest is whole.
func TestVerifyHoldsStagesAgainstTheHead(t *testing.T) {
	ctx := context.Background()
	objects := mem.New()
	r := recordtest.Train(t, objects, recordtest.Options{Run: "r", Steps: 2, Seed: 1})
	writer := commit.New(objects)
	old, _, _, err := writer.Lookup(ctx, schema.At("r", 2, schema.StageResample))
	require.NoError(t, err)
	replayed := schema.NewManifest(old.Place.WithGen(1), old.Code, old.Config)
	replayed.Inputs = []schema.Ref{r.Prepare}
	rows, err := commit.Rows[schema.SelectionRow](ctx, writer, old)
	require.NoError(t, err)
	info, err := commit.PutRows(ctx, writer, replayed.Place, rows[1:])
	require.NoError(t, err)
	replayed.Shards = append(replayed.Shards, info)
	_, ref, _, err := writer.Commit(ctx, replayed)
	require.NoError(t, err)
	require.Equal(t, []string{"lineage " + ref.Key, "rows " + ref.Key}, tamper.Faults(tamper.Verify(t, objects)),
		"a replay is held against the head too")

	pointHead(t, objects, ref)
	advantage := schema.At("r", 2, schema.StageAdvantage).ManifestKey()
	require.Equal(t, []string{"lineage " + advantage, "lineage " + ref.Key, "rows " + ref.Key},
		tamper.Faults(tamper.Verify(t, objects)))
}

// Token outputs are those of the trajectories that the head's selection keeps, and the batch is made from them.
func TestVerifyHoldsTokenOutputsAgainstTheSelection(t *testing.T) {
	ctx := context.Background()
	objects := mem.New()
	r := recordtest.Train(t, objects, recordtest.Options{Run: "r", Steps: 2, Seed: 1, Outputs: true})
	require.Empty(t, tamper.Faults(tamper.Verify(t, objects)))
	writer := commit.New(objects)
	old, _, _, err := writer.Lookup(ctx, schema.At("r", 2, schema.StageLogprobs))
	require.NoError(t, err)
	rows, err := commit.Rows[schema.TokenOutputsRow](ctx, writer, old)
	require.NoError(t, err)
	fewer := schema.NewManifest(old.Place.WithGen(1), old.Code, old.Config)
	fewer.Inputs = []schema.Ref{r.Prepare}
	info, err := commit.PutRows(ctx, writer, fewer.Place, rows[1:])
	require.NoError(t, err)
	fewer.Shards = append(fewer.Shards, info)
	_, ref, _, err := writer.Commit(ctx, fewer)
	require.NoError(t, err)
	pointHead(t, objects, ref)
	advantage := schema.At("r", 2, schema.StageAdvantage).ManifestKey()
	faults := tamper.Faults(tamper.Verify(t, objects))
	require.Contains(t, faults, "lineage "+advantage)
	require.Contains(t, faults, "lineage "+ref.Key)
	require.Contains(t, faults, "rows "+ref.Key)
}

// A head's rewards are made from its gradings; those of a replay may be made without any.
func TestVerifyHoldsRewardsAgainstTheGradings(t *testing.T) {
	ctx := context.Background()
	objects := mem.New()
	recordtest.Train(t, objects, recordtest.Options{Run: "r", Steps: 1, Seed: 1, Gradings: true})
	require.Empty(t, tamper.Faults(tamper.Verify(t, objects)))
	writer := commit.New(objects)
	old, _, _, err := writer.Lookup(ctx, schema.At("r", 1, schema.StageReward))
	require.NoError(t, err)
	without := schema.NewManifest(old.Place.WithGen(1), old.Code, old.Config)
	without.Inputs = old.Inputs
	for _, ref := range old.Parts {
		part, err := writer.Read(ctx, ref)
		require.NoError(t, err)
		require.Len(t, part.Inputs, 3, "the recipe, trajectories, gradings")
		rows, err := commit.Rows[schema.RewardRow](ctx, writer, part)
		require.NoError(t, err)
		part.Place, part.Inputs = part.WithGen(1), part.Inputs[:2]
		info, err := commit.PutRows(ctx, writer, part.Place, rows)
		require.NoError(t, err)
		part.Shards = []schema.ShardInfo{info}
		_, ref, _, err := writer.Commit(ctx, part)
		require.NoError(t, err)
		without.Parts = append(without.Parts, ref)
	}
	_, ref, _, err := writer.Commit(ctx, without)
	require.NoError(t, err)
	for _, f := range tamper.Faults(tamper.Verify(t, objects)) {
		require.NotEqual(t, "lineage "+ref.Key, f)
	}
	pointHead(t, objects, ref)
	require.Contains(t, tamper.Faults(tamper.Verify(t, objects)), "lineage "+ref.Key)
}

// A replay buffer goes on from that of the step before, and the update follows from it.
func TestVerifyFollowsTheReplayBuffer(t *testing.T) {
	ctx := context.Background()
	objects := mem.New()
	r := recordtest.Train(t, objects, recordtest.Options{Run: "r", Steps: 3, Seed: 1, Buffer: true})
	require.Empty(t, tamper.Faults(tamper.Verify(t, objects)))
	writer := commit.New(objects)
	old, _, _, err := writer.Lookup(ctx, schema.At("r", 2, schema.StageBuffer))
	require.NoError(t, err)
	require.Len(t, old.Inputs, 4)
	apart := schema.NewManifest(old.Place.WithGen(1), old.Code, old.Config)
	apart.Inputs = append([]schema.Ref{r.Prepare}, old.Inputs[2:]...)
	_, ref, _, err := writer.Commit(ctx, apart)
	require.NoError(t, err)
	pointHead(t, objects, ref)
	require.Equal(t, []string{
		"lineage " + ref.Key,
		"lineage " + schema.At("r", 2, schema.StageUpdate).ManifestKey(),
		"lineage " + schema.At("r", 3, schema.StageBuffer).ManifestKey(),
	}, tamper.Faults(tamper.Verify(t, objects)))
}

// An update that starts from another policy than the step before left is a broken lineage.
func TestVerifyFollowsThePolicy(t *testing.T) {
	ctx := context.Background()
	objects := mem.New()
	r := recordtest.Train(t, objects, recordtest.Options{Run: "r", Steps: 2, Seed: 1})
	writer := commit.New(objects)
	_, warm, _, err := writer.Lookup(ctx, schema.AtInit("r", schema.StageWarmStart))
	require.NoError(t, err)
	old, _, _, err := writer.Lookup(ctx, schema.At("r", 2, schema.StageUpdate))
	require.NoError(t, err)
	again := schema.NewManifest(old.Place.WithGen(1), old.Code, old.Config)
	again.Inputs = []schema.Ref{r.Prepare, old.Inputs[1], warm}
	again.Checkpoint = old.Checkpoint
	rows, err := commit.Rows[schema.UpdateRow](ctx, writer, old)
	require.NoError(t, err)
	rows[len(rows)-1].PolicyAfter = rows[0].PolicyBefore
	info, err := commit.PutRows(ctx, writer, again.Place, rows)
	require.NoError(t, err)
	again.Shards = append(again.Shards, info)
	_, ref, _, err := writer.Commit(ctx, again)
	require.NoError(t, err)
	pointHead(t, objects, ref, schema.StagePublish)
	require.Equal(t, []string{"lineage " + ref.Key, "lineage " + info.Key}, tamper.Faults(tamper.Verify(t, objects)))
}

func TestVerifyPassesOverOrphansAndPruned(t *testing.T) {
	objects := mem.New()
	r := recordtest.Train(t, objects, recordtest.Options{Run: "r", Steps: 2, Seed: 1})
	r.Prune(1)
	tamper.Put(t, objects, "runs/run=r/table=rewards/step=1/gen=0/00000-0123456789abcdef.parquet",
		[]byte("left by a lost attempt"))
	v := tamper.Verify(t, objects)
	require.Empty(t, v.Faults)
	require.Equal(t, 1, v.Orphans)
	require.Equal(t, 1, v.Pruned)
	require.Equal(t, 2, v.Checkpoints)
}

func TestVerifyUnknownRun(t *testing.T) {
	for _, run := range []string{"nothing", "not a name/.."} {
		_, err := verify.Run(context.Background(), mem.New(), run)
		require.ErrorIs(t, err, analysis.ErrNoRun)
	}
}

// unreachable fails as a store does whose server has gone; odd fails for one object only.
type unreachable struct {
	store.Store
	err error
	key string
}

func (u unreachable) Get(ctx context.Context, key string) ([]byte, error) {
	if strings.Contains(key, u.key) {
		return nil, u.err
	}
	return u.Store.Get(ctx, key)
}

func TestVerifyTellsTheStoreFromTheRecord(t *testing.T) {
	objects := mem.New()
	recordtest.Train(t, objects, recordtest.Options{Run: "r", Steps: 1, Seed: 1})
	_, err := verify.Run(context.Background(), unreachable{objects, store.ErrUnreachable, "table=rewards"},
		"r")
	require.ErrorIs(t, err, store.ErrUnreachable)
	v, err := verify.Run(context.Background(), unreachable{objects, errors.New("bad sector"),
		"table=selection"}, "r")
	require.NoError(t, err)
	require.Len(t, v.Faults, 1)
	require.Equal(t, verify.FaultDamaged, v.Faults[0].Kind)
	require.Contains(t, v.Faults[0].Message, "bad sector")
}

// rangesOnly is a store that does not give a checkpoint's file as a whole: one may be larger than the memory.
type rangesOnly struct{ store.Store }

func (s rangesOnly) Get(ctx context.Context, key string) ([]byte, error) {
	if strings.Contains(key, "/checkpoints/") && strings.HasSuffix(key, ".safetensors") {
		return nil, fmt.Errorf("get %s: it is read whole", key)
	}
	return s.Store.Get(ctx, key)
}

func TestVerifyReadsCheckpointsInParts(t *testing.T) {
	objects := mem.New()
	recordtest.Train(t, objects, recordtest.Options{Run: "r", Steps: 2, Seed: 1})
	v := tamper.Verify(t, rangesOnly{objects})
	require.Empty(t, v.Faults)
	require.Positive(t, v.Checkpoints)
}

// TestVerifyASharedBase: it lies once, is found sound or damaged once, and outlives the checkpoints that share it.
func TestVerifyASharedBase(t *testing.T) {
	objects := mem.New()
	r := recordtest.Train(t, objects, recordtest.Options{Run: "r", Steps: 3, Seed: 1, SharedBase: true})
	r.Prune(1)
	v := tamper.Verify(t, objects)
	require.Empty(t, tamper.Faults(v))
	require.Zero(t, v.Orphans)
	require.Equal(t, 3, v.Checkpoints, "the warm start's and two updates'")
	key := r.Updates[0].Checkpoint.Prefix + "model.safetensors"
	require.Equal(t, key, r.Updates[3].Checkpoint.Key(r.Updates[3].Checkpoint.Files[1]))
	tamper.Put(t, objects, key, []byte("other weights"))
	require.Equal(t, []string{"damaged " + key}, tamper.Faults(tamper.Verify(t, objects)))
	require.NoError(t, objects.Delete(t.Context(), key))
	require.Equal(t, []string{"missing " + key}, tamper.Faults(tamper.Verify(t, objects)))
}

// A step whose measured times were never committed is counted, and is no fault.
func TestVerifyCountsStepsWithoutTimes(t *testing.T) {
	objects := mem.New()
	recordtest.Train(t, objects, recordtest.Options{Run: "r", Steps: 2, Planned: 3, Seed: 1})
	whole, err := verify.Run(t.Context(), objects, "r")
	require.NoError(t, err)
	require.Zero(t, whole.Untimed)
	require.NoError(t, objects.Delete(t.Context(), schema.At("r", 2, "timings_step").ManifestKey()))
	without, err := verify.Run(t.Context(), objects, "r")
	require.NoError(t, err)
	require.Equal(t, 1, without.Untimed)
	require.Empty(t, without.Faults)
}
