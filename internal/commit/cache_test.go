package commit_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/internal/testing/faults"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store/mem"
)

const mebibyte = 1 << 20

// committed puts a shard of five rewards through the writer and commits it.
func committed(t *testing.T, w *commit.Writer, place schema.Place) (schema.Manifest, schema.Ref) {
	t.Helper()
	info, err := commit.PutRows(t.Context(), w, place, rewards(0, 5, 0.5))
	require.NoError(t, err)
	m := schema.NewManifest(place, code, config)
	m.Shards = []schema.ShardInfo{info}
	m, ref, _, err := w.Commit(t.Context(), m)
	require.NoError(t, err)
	return m, ref
}

// Objects that were audited are not read again, except by another audit.
func TestCacheServesWhatWasAudited(t *testing.T) {
	s := faults.New(mem.New())
	w := commit.New(s).WithCache(commit.NewCache(mebibyte))
	m, ref := committed(t, w, place)
	shard := m.Shards[0].Key
	require.Equal(t, 1, s.Count(faults.Get, shard), "the audit")
	for range 3 {
		read, err := w.Read(t.Context(), ref)
		require.NoError(t, err)
		require.Empty(t, cmp.Diff(m, read))
		rows, err := commit.Rows[schema.RewardRow](t.Context(), w, read)
		require.NoError(t, err)
		require.Empty(t, cmp.Diff(rewards(0, 5, 0.5), rows))
	}
	require.Equal(t, 1, s.Count(faults.Get, shard))
	require.Zero(t, s.Count(faults.Get, ref.Key))

	stage := schema.NewManifest(place.StageManifest(), code, config)
	stage.Parts = []schema.Ref{ref}
	_, stageRef, _, err := w.Commit(t.Context(), stage)
	require.NoError(t, err)
	require.Equal(t, 1, s.Count(faults.Get, ref.Key), "the stage's audit reads its parts from the store")
	head, err := schema.NewHead("quick-1", "3", stageRef)
	require.NoError(t, err)
	_, _, _, err = w.CommitHead(t.Context(), head)
	require.NoError(t, err)
	require.Equal(t, 1, s.Count(faults.Get, stageRef.Key), "the head's audit reads its manifests from the store")

	_, _, found, err := w.Lookup(t.Context(), place)
	require.NoError(t, err)
	require.True(t, found)
	require.Equal(t, 2, s.Count(faults.Get, ref.Key), "a look-up has no digest to go by")
}

func TestCacheServesWhatWasRead(t *testing.T) {
	inner := mem.New()
	m, ref := committed(t, commit.New(inner), place)
	s := faults.New(inner)
	cache := commit.NewCache(mebibyte)
	w := commit.New(s).WithCache(cache)
	for range 2 {
		read, err := w.Read(t.Context(), ref)
		require.NoError(t, err)
		rows, err := commit.Rows[schema.RewardRow](t.Context(), w, read)
		require.NoError(t, err)
		require.Len(t, rows, 5)
	}
	require.Len(t, s.Log(), 2, "the manifest and its shard, once each: %v", s.Log())
	stats := cache.Stats()
	require.EqualValues(t, 2, stats.Hits)
	require.EqualValues(t, 2, stats.Misses)
	require.Equal(t, 2, stats.Objects)
	require.Greater(t, stats.Bytes, m.Shards[0].Bytes)
}

// Neither a damaged object nor a caller's change to the bytes it got reaches the cache.
func TestCacheNeverServesOtherBytes(t *testing.T) {
	inner := mem.New()
	m, _ := committed(t, commit.New(inner), place)
	shard := m.Shards[0]
	s := faults.New(inner, faults.Rule{Op: faults.Get, Key: shard.Key, Nth: 1, Effect: faults.TornSilently})
	w := commit.New(s).WithCache(commit.NewCache(mebibyte))
	_, err := w.ReadShard(t.Context(), shard)
	require.ErrorIs(t, err, commit.ErrDamaged)
	data, err := w.ReadShard(t.Context(), shard)
	require.NoError(t, err)
	want := string(data)
	clear(data)
	again, err := w.ReadShard(t.Context(), shard)
	require.NoError(t, err)
	require.Equal(t, want, string(again))
	clear(again)
	again, err = w.ReadShard(t.Context(), shard)
	require.NoError(t, err)
	require.Equal(t, want, string(again))

	// The same bytes under another key were not verified there.
	moved := shard
	moved.Key = place.WithShard(7).DataKey(shard.Table, shard.Digest, shard.Table.Ext())
	_, err = w.ReadShard(t.Context(), moved)
	require.ErrorIs(t, err, commit.ErrDamaged)
	// Another digest is a miss, even if the key is in the cache.
	other := shard
	other.Digest = schema.Digest([]byte("other"))
	_, err = w.ReadShard(t.Context(), other)
	require.ErrorIs(t, err, commit.ErrDamaged)
}

// A failed audit leaves nothing in the cache.
func TestCacheIsFilledAfterTheAudit(t *testing.T) {
	s := faults.New(mem.New(), faults.Rule{Op: faults.Put, Key: "table=rewards", Effect: faults.TornSilently})
	cache := commit.NewCache(mebibyte)
	w := commit.New(s).WithCache(cache)
	info, err := commit.PutRows(t.Context(), w, place, rewards(0, 5, 0.5))
	require.NoError(t, err, "the store lied")
	m := schema.NewManifest(place, code, config)
	m.Shards = []schema.ShardInfo{info}
	_, _, _, err = w.Commit(t.Context(), m)
	require.ErrorIs(t, err, commit.ErrUnkept)
	require.Zero(t, cache.Stats().Objects)
}

func TestCacheForgetsARun(t *testing.T) {
	s := faults.New(mem.New())
	w := commit.New(s).WithCache(commit.NewCache(mebibyte))
	m, _ := committed(t, w, place)
	elsewhere, _ := committed(t, w, schema.At("quick-10", 3, schema.StageReward).WithShard(0))
	w.Forget("quick-1")
	for _, x := range []schema.Manifest{m, elsewhere} {
		_, err := w.ReadShard(t.Context(), x.Shards[0])
		require.NoError(t, err)
	}
	require.Equal(t, 2, s.Count(faults.Get, m.Shards[0].Key), "audit and read")
	require.Equal(t, 1, s.Count(faults.Get, elsewhere.Shards[0].Key), "another run's stays")
}

// The least recently used objects are evicted, and no object takes most of the cache.
func TestCacheIsBoundedInBytes(t *testing.T) {
	const limit, size = 64 << 10, 4 << 10
	inner := mem.New()
	s := faults.New(inner)
	cache := commit.NewCache(limit)
	w := commit.New(s).WithCache(cache)
	shard := func(i, size int) schema.ShardInfo {
		data := make([]byte, size)
		copy(data, fmt.Sprint(i))
		info, err := commit.New(inner).Shard(t.Context(), place.WithShard(i), schema.Documents, data, 1)
		require.NoError(t, err)
		return info
	}
	read := func(info schema.ShardInfo) (requests int) {
		before := s.Count(faults.Get, info.Key)
		_, err := w.ReadShard(t.Context(), info)
		require.NoError(t, err)
		require.LessOrEqual(t, cache.Stats().Bytes, int64(limit))
		return s.Count(faults.Get, info.Key) - before
	}
	const fit = limit / size
	var shards []schema.ShardInfo
	for i := range fit + 1 {
		shards = append(shards, shard(i, size))
	}
	for _, info := range shards[:fit] {
		require.Equal(t, 1, read(info))
	}
	require.Zero(t, read(shards[0]), "all fit, and the first is now the latest used")
	require.Equal(t, 1, read(shards[fit]))
	require.Equal(t, 1, read(shards[1]), "the least recently used one made room")
	require.Zero(t, read(shards[0]))

	large := shard(100, limit/4+1)
	require.Equal(t, 1, read(large))
	require.Equal(t, 1, read(large), "too large to keep")
	require.Equal(t, fit, cache.Stats().Objects)

	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 50 {
				for _, info := range shards {
					if _, err := w.ReadShard(t.Context(), info); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
	require.LessOrEqual(t, cache.Stats().Bytes, int64(limit))
	require.EqualValues(t, cache.Stats().Objects*size, cache.Stats().Bytes)
}

// A writer without a cache, or with one of size 0, reads the store each time.
func TestWithoutACache(t *testing.T) {
	for name, cache := range map[string]*commit.Cache{"none": nil, "of no size": commit.NewCache(0)} {
		t.Run(name, func(t *testing.T) {
			s := faults.New(mem.New())
			w := commit.New(s).WithCache(cache)
			m, _ := committed(t, w, place)
			_, err := w.ReadShard(t.Context(), m.Shards[0])
			require.NoError(t, err)
			require.Equal(t, 2, s.Count(faults.Get, m.Shards[0].Key))
			w.Forget("quick-1")
			require.Zero(t, w.CacheStats().Objects)
		})
	}
}
