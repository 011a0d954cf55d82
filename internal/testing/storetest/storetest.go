// Package storetest is the conformance suite that every store.Store passes.
package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/store"
)

// multipart is just above the size at which S3 clients usually switch to multipart uploads.
const multipart = 17 << 20

// Run runs the suite. open returns a store that is empty, or to whose keys no one else writes.
func Run(t *testing.T, open func(*testing.T) store.Store) {
	tests := []struct {
		name string
		run  func(*testing.T, store.Store)
	}{
		{"put and get", putAndGet},
		{"missing object", missing},
		{"put from and copy", putFrom},
		{"ranges", ranges},
		{"content that ends early", shortContent},
		{"object beyond the limit", tooLarge},
		{"put again", putAgain},
		{"put renews the age", putRenews},
		{"callers own their bytes", ownBytes},
		{"put if absent", putIfAbsent},
		{"small race", func(t *testing.T, s store.Store) { race(t, s, 32, 64) }},
		{"large race", func(t *testing.T, s store.Store) { race(t, s, 4, multipart) }},
		{"list", list},
		{"list more than a page", listPages},
		{"delete", remove},
		{"keys", keys},
		{"cancelled context", cancelled},
		{"probe", func(t *testing.T, s store.Store) { probe(t, s) }},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) { test.run(t, open(t)) })
	}
}

// body returns n bytes that differ by seed and by position.
func body(n int, seed byte) []byte {
	data := make([]byte, n)
	for i := range data {
		data[i] = byte(i) ^ byte(i>>8)*31 ^ seed
	}
	return data
}

// holds requires that an object has these bytes.
func holds(t *testing.T, s store.Store, key string, want []byte) {
	t.Helper()
	got, err := s.Get(t.Context(), key)
	require.NoError(t, err)
	require.NotNil(t, got)
	require.True(t, bytes.Equal(want, got), "%s, of %d bytes, came back as %d other bytes", key, len(want), len(got))
}

func putAndGet(t *testing.T, s store.Store) {
	for _, size := range []int{0, 1, 4096, 1 << 20, multipart} {
		key := fmt.Sprintf("sizes/%d.bin", size)
		want := body(size, 7)
		require.NoError(t, s.Put(t.Context(), key, want))
		holds(t, s, key, want)
	}
}

func missing(t *testing.T, s store.Store) {
	_, err := s.Get(t.Context(), "missing/object.json")
	require.ErrorIs(t, err, store.ErrNotFound)
	require.ErrorContains(t, err, "missing/object.json")
}

func putAgain(t *testing.T, s store.Store) {
	for range 3 {
		require.NoError(t, s.Put(t.Context(), "again/a.bin", body(1000, 1)))
	}
	holds(t, s, "again/a.bin", body(1000, 1))
}

// putRenews checks that putting an object again renews its age, so that garbage collection keeps it.
func putRenews(t *testing.T, s store.Store) {
	modified := func() time.Time {
		listed, err := s.List(t.Context(), "renew/a.bin")
		require.NoError(t, err)
		require.Len(t, listed, 1)
		return listed[0].Modified
	}
	require.NoError(t, s.Put(t.Context(), "renew/a.bin", body(1000, 1)))
	before := modified()
	time.Sleep(1100 * time.Millisecond) // some servers store times in seconds
	require.NoError(t, s.Put(t.Context(), "renew/a.bin", body(1000, 1)))
	require.True(t, modified().After(before))
}

func ownBytes(t *testing.T, s store.Store) {
	data := body(100, 1)
	require.NoError(t, s.Put(t.Context(), "own/a.bin", data))
	data[0] ^= 0xff
	got, err := s.Get(t.Context(), "own/a.bin")
	require.NoError(t, err)
	require.Equal(t, body(100, 1), got)
	got[1] ^= 0xff
	holds(t, s, "own/a.bin", body(100, 1))
}

func putIfAbsent(t *testing.T, s store.Store) {
	key := "absent/gen=0.json"
	require.NoError(t, s.PutIfAbsent(t.Context(), key, []byte("first")))
	err := s.PutIfAbsent(t.Context(), key, []byte("second"))
	require.ErrorIs(t, err, store.ErrExists)
	require.ErrorContains(t, err, key)
	require.NoError(t, s.PutIfAbsent(t.Context(), key, []byte("first")), "the same bytes are the caller's own success")
	holds(t, s, key, []byte("first"))
	require.NoError(t, s.Delete(t.Context(), key))
	require.NoError(t, s.PutIfAbsent(t.Context(), key, []byte("third")), "a deleted key is free")
}

func race(t *testing.T, s store.Store, writers, size int) {
	key := "race/gen=0.json"
	outcomes := make([]error, writers)
	start := make(chan struct{})
	var wg sync.WaitGroup
	for i := range writers {
		data := body(size, byte(i))
		wg.Go(func() {
			<-start
			outcomes[i] = s.PutIfAbsent(t.Context(), key, data)
		})
	}
	close(start)
	wg.Wait()
	winner := -1
	for i, err := range outcomes {
		if err == nil {
			require.Equal(t, -1, winner, "two writers won")
			winner = i
			continue
		}
		require.ErrorIs(t, err, store.ErrExists)
	}
	require.NotEqual(t, -1, winner, "no writer won")
	holds(t, s, key, body(size, byte(winner)))
}

func list(t *testing.T, s store.Store) {
	for _, key := range []string{"runs/run=b/2.json", "runs/run=a/table=x/1.parquet", "runs/run=a/table=x-y/0.parquet",
		"runs/run=ab/3.json"} {
		require.NoError(t, s.Put(t.Context(), key, []byte(key)))
	}
	for prefix, want := range map[string][]string{
		"runs/": {"runs/run=a/table=x-y/0.parquet", "runs/run=a/table=x/1.parquet", "runs/run=ab/3.json",
			"runs/run=b/2.json"},
		"runs/run=a/":        {"runs/run=a/table=x-y/0.parquet", "runs/run=a/table=x/1.parquet"},
		"runs/run=a":         {"runs/run=a/table=x-y/0.parquet", "runs/run=a/table=x/1.parquet", "runs/run=ab/3.json"},
		"runs/run=b/2.json":  {"runs/run=b/2.json"},
		"runs/run=nothing/":  {},
		"runs/run=a/table=x": {"runs/run=a/table=x-y/0.parquet", "runs/run=a/table=x/1.parquet"},
	} {
		objects, err := s.List(t.Context(), prefix)
		require.NoError(t, err)
		got := []string{}
		for _, o := range objects {
			require.Equal(t, int64(len(o.Key)), o.Size, o.Key)
			got = append(got, o.Key)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("list %q (-want +got):\n%s", prefix, diff)
		}
	}
}

func listPages(t *testing.T, s store.Store) {
	const n = 1050 // a page of S3 holds 1,000
	var wg sync.WaitGroup
	failures := make([]error, 8)
	for w := range failures {
		wg.Go(func() {
			for i := w; i < n && failures[w] == nil; i += len(failures) {
				failures[w] = s.Put(t.Context(), fmt.Sprintf("pages/%05d", i), []byte{byte(i)})
			}
		})
	}
	wg.Wait()
	require.NoError(t, errors.Join(failures...))
	objects, err := s.List(t.Context(), "pages/")
	require.NoError(t, err)
	require.Len(t, objects, n)
	for i, o := range objects {
		require.NotZero(t, o.Modified, o.Key)
		o.Modified = time.Time{}
		require.Equal(t, store.Object{Key: fmt.Sprintf("pages/%05d", i), Size: 1}, o)
	}
}

func remove(t *testing.T, s store.Store) {
	require.NoError(t, s.Put(t.Context(), "delete/a.bin", []byte("a")))
	require.NoError(t, s.Delete(t.Context(), "delete/a.bin"))
	require.NoError(t, s.Delete(t.Context(), "delete/a.bin"), "deleting an absent object succeeds")
	_, err := s.Get(t.Context(), "delete/a.bin")
	require.ErrorIs(t, err, store.ErrNotFound)
	objects, err := s.List(t.Context(), "delete/")
	require.NoError(t, err)
	require.Empty(t, objects)
}

func keys(t *testing.T, s store.Store) {
	for _, key := range []string{"runs/run=a.b_c-1/table=tool_calls/step=init/gen=0/00000-0123456789abcdef.parquet",
		"space and ünïcode/%41+&.json", "x"} {
		require.NoError(t, s.Put(t.Context(), key, []byte(key)), key)
		holds(t, s, key, []byte(key))
	}
	for _, key := range []string{"", "/a", "a/", "a//b", "../a", "a/./b", "a\x00", "\xff", strings.Repeat("k", 1025)} {
		_, err := s.Get(t.Context(), key)
		require.Error(t, err, "get %q", key)
		require.NotErrorIs(t, err, store.ErrNotFound, "get %q", key)
		require.Error(t, s.Put(t.Context(), key, nil), "put %q", key)
		require.Error(t, s.PutFrom(t.Context(), key, bytes.NewReader(nil), 0), "put from %q", key)
		_, err = s.GetRange(t.Context(), key, 0, 1)
		require.Error(t, err, "get range of %q", key)
		require.NotErrorIs(t, err, store.ErrNotFound, "get range of %q", key)
		require.Error(t, s.PutIfAbsent(t.Context(), key, nil), "put if absent %q", key)
		require.Error(t, s.Delete(t.Context(), key), "delete %q", key)
	}
}

func cancelled(t *testing.T, s store.Store) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.Get(ctx, "cancelled/a")
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, s.Put(ctx, "cancelled/a", []byte("a")), context.Canceled)
	require.ErrorIs(t, s.PutFrom(ctx, "cancelled/a", bytes.NewReader(body(multipart, 1)), multipart), context.Canceled)
	_, err = s.GetRange(ctx, "cancelled/a", 0, 1)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, s.PutIfAbsent(ctx, "cancelled/a", []byte("a")), context.Canceled)
	require.ErrorIs(t, s.Delete(ctx, "cancelled/a"), context.Canceled)
	_, err = s.List(ctx, "cancelled/")
	require.ErrorIs(t, err, context.Canceled)
	_, err = s.Get(t.Context(), "cancelled/a")
	require.ErrorIs(t, err, store.ErrNotFound, "nothing was written")
}

func probe(t *testing.T, s store.Store) {
	require.NoError(t, store.Probe(t.Context(), s))
	left, err := s.List(t.Context(), ".ropewalk-probe/")
	require.NoError(t, err)
	require.Empty(t, left, "the probe leaves nothing")
}
