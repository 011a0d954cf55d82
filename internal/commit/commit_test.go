package commit_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/internal/testing/faults"
	"github.com/ropewalk/ropewalk/internal/testing/storetest"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store"
	"github.com/ropewalk/ropewalk/store/mem"
	"github.com/ropewalk/ropewalk/store/s3"
)

var (
	code   = schema.Digest([]byte("code"))
	config = schema.Digest([]byte("recipe"))
	place  = schema.At("quick-1", 3, schema.StageReward).WithShard(0)
)

// rewards returns n rows of step 3, starting with a first group, each with the reward.
func rewards(first, n int, reward float64) []schema.RewardRow {
	rows := make([]schema.RewardRow, n)
	for i := range rows {
		g := first + i
		rows[i] = schema.RewardRow{GroupID: schema.GroupID(3, g), TrajectoryID: schema.TrajectoryID(3, g, 0),
			Reward: reward, Verdict: "exact"}
	}
	return rows
}

// attempt does what an activity does: put its shard, commit its manifest.
func attempt(ctx context.Context, s store.Store, place schema.Place, rows []schema.RewardRow) (schema.Manifest,
	schema.Ref, bool, error) {
	w := commit.New(s)
	info, err := commit.PutRows(ctx, w, place, rows)
	if err != nil {
		return schema.Manifest{}, schema.Ref{}, false, err
	}
	m := schema.NewManifest(place, code, config)
	m.Shards = []schema.ShardInfo{info}
	m.Stats["reward"] = rows[0].Reward
	return w.Commit(ctx, m)
}

func TestCommitAndRead(t *testing.T) {
	s := mem.New()
	w := commit.New(s)
	_, _, found, err := w.Lookup(t.Context(), place)
	require.NoError(t, err)
	require.False(t, found)

	want := rewards(0, 5, 0.5)
	m, ref, adopted, err := attempt(t.Context(), s, place, want)
	require.NoError(t, err)
	require.False(t, adopted)
	require.Equal(t, place.ManifestKey(), ref.Key)

	looked, lookedRef, found, err := w.Lookup(t.Context(), place)
	require.NoError(t, err)
	require.True(t, found)
	require.Equal(t, ref, lookedRef)
	require.Empty(t, cmp.Diff(m, looked))
	read, err := w.Read(t.Context(), ref)
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(m, read))
	rows, err := commit.Rows[schema.RewardRow](t.Context(), w, m)
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(want, rows))
	none, err := commit.Rows[schema.TurnRow](t.Context(), w, m)
	require.NoError(t, err)
	require.Empty(t, none)
}

// TestStageCommitsItsParts commits three shards, then the stage manifest; readers get all rows in order.
func TestStageCommitsItsParts(t *testing.T) {
	s := mem.New()
	w := commit.New(s)
	stage := schema.NewManifest(place.StageManifest(), code, config)
	var want []schema.RewardRow
	for shard := range 3 {
		rows := rewards(10*shard, 4, float64(shard))
		_, ref, _, err := attempt(t.Context(), s, place.WithShard(shard), rows)
		require.NoError(t, err)
		stage.Parts = append(stage.Parts, ref)
		want = append(want, rows...)
	}
	stage, ref, _, err := w.Commit(t.Context(), stage)
	require.NoError(t, err)
	rows, err := commit.Rows[schema.RewardRow](t.Context(), w, stage)
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(want, rows))

	head, err := schema.NewHead("quick-1", "3", ref)
	require.NoError(t, err)
	_, headRef, adopted, err := w.CommitHead(t.Context(), head)
	require.NoError(t, err)
	require.False(t, adopted)

	// A replay commits generation 1; the head stays where it was.
	replay := schema.NewManifest(place.StageManifest().WithGen(1), code, config)
	replay.Parts = stage.Parts
	_, replayRef, _, err := w.Commit(t.Context(), replay)
	require.NoError(t, err)
	moved, err := schema.NewHead("quick-1", "3", replayRef)
	require.NoError(t, err)
	got, gotRef, adopted, err := w.CommitHead(t.Context(), moved)
	require.NoError(t, err)
	require.True(t, adopted)
	require.Equal(t, headRef, gotRef)
	require.Equal(t, head, got)
	stored, storedRef, found, err := w.Head(t.Context(), "quick-1", "3")
	require.NoError(t, err)
	require.True(t, found)
	require.Equal(t, headRef, storedRef)
	require.Equal(t, head, stored)
	_, _, found, err = w.Head(t.Context(), "quick-1", "4")
	require.NoError(t, err)
	require.False(t, found)
}

// TestOneOfManyAttemptsWins checks that every attempt gets the winner's manifest and rows; the losers' objects remain
// and are never read.
func TestOneOfManyAttemptsWins(t *testing.T) {
	stores := map[string]func(t *testing.T) store.Store{
		"memory": func(*testing.T) store.Store { return mem.New() },
		"s3": func(t *testing.T) store.Store {
			server := storetest.Versitygw(t)
			s, err := s3.New(s3.Options{Endpoint: server.Endpoint, AccessKey: server.AccessKey,
				SecretKey: server.SecretKey})
			require.NoError(t, err)
			require.NoError(t, s.EnsureBucket(t.Context()))
			return s
		},
	}
	for name, open := range stores {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			const attempts = 16
			type result struct {
				m       schema.Manifest
				ref     schema.Ref
				adopted bool
				err     error
			}
			results := make([]result, attempts)
			var wg sync.WaitGroup
			for i := range results {
				wg.Go(func() {
					r := &results[i]
					r.m, r.ref, r.adopted, r.err = attempt(t.Context(), s, place, rewards(0, 3, float64(i)))
				})
			}
			wg.Wait()
			winners := 0
			for i, r := range results {
				require.NoError(t, r.err)
				require.Equal(t, results[0].ref, r.ref)
				require.Empty(t, cmp.Diff(results[0].m, r.m))
				if !r.adopted {
					winners++
					require.InDelta(t, float64(i), r.m.Stats["reward"], 0)
				}
			}
			require.Equal(t, 1, winners)
			shards, err := s.List(t.Context(), "runs/run=quick-1/table=rewards/")
			require.NoError(t, err)
			require.Len(t, shards, attempts, "the losers' shards are orphans")
			rows, err := commit.Rows[schema.RewardRow](t.Context(), commit.New(s), results[3].m)
			require.NoError(t, err)
			require.Empty(t, cmp.Diff(rewards(0, 3, results[0].m.Stats["reward"]), rows))
		})
	}
}

// TestFaults checks that the record is never wrong, whatever one call of the protocol does: an attempt either succeeds,
// or fails and commits nothing that is damaged, and the next attempt succeeds.
func TestFaults(t *testing.T) {
	tests := []struct {
		name    string
		rule    faults.Rule
		fails   bool // the first attempt
		adopted bool // by the last attempt
	}{
		{"shard is not put", faults.Rule{Op: faults.Put, Nth: 1}, true, false},
		{"shard's acknowledgement is lost", faults.Rule{Op: faults.Put, Nth: 1, Effect: faults.LostAck}, true, false},
		{"shard is torn", faults.Rule{Op: faults.Put, Nth: 1, Effect: faults.Torn}, true, false},
		{"shard is torn and the store says nothing", faults.Rule{Op: faults.Put, Nth: 1, Effect: faults.TornSilently},
			true, false},
		{"shard cannot be read back", faults.Rule{Op: faults.Get, Key: "table=", Nth: 1}, true, false},
		{"shard is read back torn", faults.Rule{Op: faults.Get, Key: "table=", Nth: 1, Effect: faults.TornSilently},
			true, false},
		{"manifest is not put", faults.Rule{Op: faults.PutIfAbsent, Nth: 1}, true, false},
		{"manifest's acknowledgement is lost", faults.Rule{Op: faults.PutIfAbsent, Nth: 1, Effect: faults.LostAck},
			true, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			inner := mem.New()
			s := faults.New(inner, test.rule)
			_, _, _, err := attempt(t.Context(), s, place, rewards(0, 3, 1))
			require.Equal(t, test.fails, err != nil, "%v", err)
			if m, _, found, err := commit.New(inner).Lookup(t.Context(), place); found || err != nil {
				require.NoError(t, err)
				_, err := commit.Rows[schema.RewardRow](t.Context(), commit.New(inner), m)
				require.NoError(t, err, "what is committed is whole")
			}
			// The second attempt's rows differ, so that the test can tell whose manifest is committed.
			m, _, adopted, err := attempt(t.Context(), s, place, rewards(0, 3, 2))
			require.NoError(t, err)
			require.Equal(t, test.adopted, adopted)
			rows, err := commit.Rows[schema.RewardRow](t.Context(), commit.New(inner), m)
			require.NoError(t, err)
			require.Empty(t, cmp.Diff(rewards(0, 3, m.Stats["reward"]), rows))
		})
	}
}

func TestATornManifestIsNamedAndNotReplaced(t *testing.T) {
	s := faults.New(mem.New(), faults.Rule{Op: faults.PutIfAbsent, Nth: 1, Effect: faults.TornSilently})
	_, _, _, err := attempt(t.Context(), s, place, rewards(0, 3, 1))
	require.NoError(t, err, "a store that lies to the last cannot be caught by its writer")
	_, _, found, err := commit.New(s).Lookup(t.Context(), place)
	require.False(t, found)
	require.ErrorIs(t, err, commit.ErrDamaged)
	_, _, _, err = attempt(t.Context(), s, place, rewards(0, 3, 2))
	require.ErrorIs(t, err, commit.ErrDamaged)
	require.ErrorContains(t, err, place.ManifestKey())
	require.ErrorContains(t, err, "restore the object from a copy")
}

// TestDamageIsNamed checks that the error names the key, both digests and what to do.
func TestDamageIsNamed(t *testing.T) {
	s := mem.New()
	w := commit.New(s)
	m, ref, _, err := attempt(t.Context(), s, place, rewards(0, 3, 1))
	require.NoError(t, err)
	shard := m.Shards[0]
	data, err := s.Get(t.Context(), shard.Key)
	require.NoError(t, err)

	wrong := append([]byte{}, data...)
	wrong[len(wrong)/2] ^= 1
	require.NoError(t, s.Put(t.Context(), shard.Key, wrong))
	_, err = w.ReadShard(t.Context(), shard)
	require.ErrorIs(t, err, commit.ErrDamaged)
	for _, text := range []string{shard.Key, shard.Digest, schema.Digest(wrong), "restore the object from a copy"} {
		require.ErrorContains(t, err, text)
	}

	require.NoError(t, s.Delete(t.Context(), shard.Key))
	_, err = commit.Rows[schema.RewardRow](t.Context(), w, m)
	require.ErrorIs(t, err, commit.ErrDamaged)
	require.ErrorIs(t, err, store.ErrNotFound)
	require.ErrorContains(t, err, "missing though a manifest lists it")

	_, err = w.Read(t.Context(), schema.Ref{Key: ref.Key, Digest: schema.Digest(nil)})
	require.ErrorIs(t, err, commit.ErrDamaged)
	require.ErrorContains(t, err, ref.Digest)
}

func TestAuditRefuses(t *testing.T) {
	s := mem.New()
	w := commit.New(s)
	rows := rewards(0, 3, 1)
	info, err := commit.PutRows(t.Context(), w, place, rows)
	require.NoError(t, err)
	text, err := w.Shard(t.Context(), place, schema.Rewards, []byte("rewards, but as text"), 3)
	require.NoError(t, err)
	tests := []struct {
		name   string
		change func(*schema.Manifest)
		text   string
	}{
		{"a wrong row count", func(m *schema.Manifest) { m.Shards[0].Rows = 4 },
			"holds 3 rows, but its manifest says 4"},
		{"a wrong size", func(m *schema.Manifest) { m.Shards[0].Bytes++ }, fmt.Sprintf("says %d bytes", info.Bytes+1)},
		{"bytes that are no table", func(m *schema.Manifest) { m.Shards[0] = text }, "corrupt"},
		{"a part that is not there", func(m *schema.Manifest) {
			m.Shards, m.Place = nil, place.StageManifest()
			m.Parts = []schema.Ref{{Key: place.WithShard(7).ManifestKey(), Digest: code}}
		}, "shard=7"},
		{"a checkpoint file that is not there", func(m *schema.Manifest) {
			m.Checkpoint = &schema.Checkpoint{Prefix: place.CheckpointPrefix("v"), Digest: code,
				Files: []schema.CheckpointFile{{Name: "model.safetensors", Digest: code, Bytes: 1}}}
		}, "checkpoints/v/model.safetensors"},
		{"a shard of elsewhere", func(m *schema.Manifest) { m.Run = "another" }, "the key of a shard with that digest"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			m := schema.NewManifest(place, code, config)
			m.Shards = []schema.ShardInfo{info}
			test.change(&m)
			_, _, _, err := w.Commit(t.Context(), m)
			require.ErrorContains(t, err, test.text)
			_, _, found, err := w.Lookup(t.Context(), m.Place)
			require.NoError(t, err)
			require.False(t, found, "nothing is committed")
		})
	}
}

// What no manifest lists yet is made again by the next attempt, so its loss is no damage that someone must mend. The
// files of a checkpoint that was committed elsewhere are listed.
func TestALossBeforeTheCommitIsNoDamage(t *testing.T) {
	s := mem.New()
	w := commit.New(s)
	info, err := commit.PutRows(t.Context(), w, place, rewards(0, 3, 1))
	require.NoError(t, err)
	weights := []byte("weights")
	checkpointAt := func(at schema.Place) (string, *schema.Checkpoint) {
		prefix := at.CheckpointPrefix("000001-0123456789abcdef")
		digest, err := w.Blob(t.Context(), prefix+"model.safetensors", weights)
		require.NoError(t, err)
		return prefix + "model.safetensors", &schema.Checkpoint{Prefix: prefix, Digest: digest,
			Files: []schema.CheckpointFile{{Name: "model.safetensors", Digest: digest, Bytes: int64(len(weights))}}}
	}
	own, made := checkpointAt(place)
	other, shared := checkpointAt(schema.AtWarmStart(code))
	for _, c := range []struct {
		name, key  string
		checkpoint *schema.Checkpoint
		want, not  error
	}{
		{"a shard", info.Key, nil, commit.ErrUnkept, commit.ErrDamaged},
		{"a file of its checkpoint", own, made, commit.ErrUnkept, commit.ErrDamaged},
		{"a file of a warm start", other, shared, commit.ErrDamaged, commit.ErrUnkept},
	} {
		for _, lost := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, lost: %v", c.name, lost), func(t *testing.T) {
				before, err := s.Get(t.Context(), c.key)
				require.NoError(t, err)
				require.NoError(t, s.Delete(t.Context(), c.key))
				if !lost {
					require.NoError(t, s.Put(t.Context(), c.key, append([]byte("?"), before[1:]...)))
				}
				m := schema.NewManifest(place, code, config)
				m.Shards, m.Checkpoint = []schema.ShardInfo{info}, c.checkpoint
				_, _, _, err = w.Commit(t.Context(), m)
				require.ErrorIs(t, err, c.want)
				require.NotErrorIs(t, err, c.not)
				require.ErrorContains(t, err, c.key)
				require.Equal(t, c.want == commit.ErrDamaged, strings.Contains(err.Error(), "from a copy"), err)
				require.NoError(t, s.Put(t.Context(), c.key, before))
			})
		}
	}
}

func TestCheckpointsBatchesAndDocuments(t *testing.T) {
	w := commit.New(mem.New())
	at := schema.At("quick-1", 3, schema.StageUpdate)
	weights := []byte("weights")
	version := schema.Digest(weights)
	digest, err := w.Blob(t.Context(), at.CheckpointPrefix(version)+"model.safetensors", weights)
	require.NoError(t, err)
	batch := []schema.BatchRow{{GroupID: schema.GroupID(3, 0), TrajectoryID: schema.TrajectoryID(3, 0, 0), Count: 1,
		TokenIDs: []int32{1}, LossMask: []int32{1}, Advantages: []float32{0.5}}}
	encoded, err := schema.EncodeBatch(batch)
	require.NoError(t, err)
	shard, err := w.Shard(t.Context(), at, schema.Batch, encoded, len(batch))
	require.NoError(t, err)
	document, err := commit.PutDocument(t.Context(), w, at, map[string]any{"seed": 7, "name": "quickstart"})
	require.NoError(t, err)

	m := schema.NewManifest(at, code, config)
	m.Shards = []schema.ShardInfo{shard, document}
	m.Checkpoint = &schema.Checkpoint{Prefix: at.CheckpointPrefix(version), Digest: version,
		Files: []schema.CheckpointFile{{Name: "model.safetensors", Digest: digest, Bytes: int64(len(weights))}}}
	m, _, _, err = w.Commit(t.Context(), m)
	require.NoError(t, err)
	got, err := commit.Batch(t.Context(), w, m)
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(batch, got))
	read, err := w.ReadShard(t.Context(), m.ShardsOf(schema.Documents)[0])
	require.NoError(t, err)
	require.Equal(t, "{\n  \"name\": \"quickstart\",\n  \"seed\": 7\n}\n", string(read))
}

func TestErrorsOfTheStorePassThrough(t *testing.T) {
	full := errors.New("full")
	for _, op := range []faults.Op{faults.Put, faults.PutIfAbsent, faults.Get} {
		_, _, _, err := attempt(t.Context(), faults.New(mem.New(), faults.Rule{Op: op, Err: full}), place,
			rewards(0, 1, 1))
		require.ErrorIs(t, err, full, "%s", op)
		require.NotErrorIs(t, err, commit.ErrDamaged, "%s", op)
	}
}
