package storetest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/store"
)

func putFrom(t *testing.T, s store.Store) {
	for _, size := range []int{0, 1, 4096, 5 << 20, multipart} {
		key := fmt.Sprintf("from/%d.bin", size)
		want := body(size, 3)
		for range 2 { // a second put is harmless
			require.NoError(t, s.PutFrom(t.Context(), key, bytes.NewReader(want), int64(size)))
		}
		holds(t, s, key, want)
		var copied bytes.Buffer
		n, err := store.Copy(t.Context(), s, key, int64(size), &copied)
		require.NoError(t, err)
		require.EqualValues(t, size, n)
		require.True(t, bytes.Equal(want, copied.Bytes()), "object of %d bytes was copied as other bytes", size)
	}
	other := body(multipart, 4)
	key := fmt.Sprintf("from/%d.bin", multipart)
	require.NoError(t, s.PutFrom(t.Context(), key, bytes.NewReader(other), multipart), "a damaged object is replaced")
	holds(t, s, key, other)

	// A caller that expects another size learns the difference from the count.
	for size, want := range map[int64]int64{0: 1, 4000: 4001, 5000: 4096} {
		n, err := store.Copy(t.Context(), s, "from/4096.bin", size, io.Discard)
		require.NoError(t, err)
		require.Equal(t, want, n, "expected %d", size)
	}
	_, err := store.Copy(t.Context(), s, "from/none", 10, io.Discard)
	require.ErrorIs(t, err, store.ErrNotFound)
	full := errors.New("disk is full")
	_, err = store.Copy(t.Context(), s, key, multipart, failing{full})
	require.ErrorIs(t, err, full)
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

func ranges(t *testing.T, s store.Store) {
	want := body(1000, 5)
	require.NoError(t, s.Put(t.Context(), "ranges/a.bin", want))
	require.NoError(t, s.Put(t.Context(), "ranges/empty.bin", nil))
	for _, r := range []struct{ offset, length, from, to int64 }{
		{0, 1, 0, 1}, {0, 1000, 0, 1000}, {10, 20, 10, 30}, {999, 1, 999, 1000},
		{990, 100, 990, 1000}, {1000, 1, 0, 0}, {5000, 10, 0, 0},
	} {
		got, err := s.GetRange(t.Context(), "ranges/a.bin", r.offset, r.length)
		require.NoError(t, err, "%d bytes from %d", r.length, r.offset)
		require.True(t, bytes.Equal(want[r.from:r.to], got), "%d bytes from %d: got %d", r.length, r.offset, len(got))
	}
	got, err := s.GetRange(t.Context(), "ranges/empty.bin", 0, 10)
	require.NoError(t, err)
	require.Empty(t, got)
	got, err = s.GetRange(t.Context(), "ranges/a.bin", 0, 10)
	require.NoError(t, err)
	got[0] ^= 0xff
	again, err := s.GetRange(t.Context(), "ranges/a.bin", 0, 10)
	require.NoError(t, err)
	require.Equal(t, want[:10], again, "callers own their bytes")
	for _, r := range [][2]int64{{-1, 1}, {0, 0}, {0, -1}} {
		_, err := s.GetRange(t.Context(), "ranges/a.bin", r[0], r[1])
		require.ErrorContains(t, err, "ranges/a.bin")
	}
	_, err = s.GetRange(t.Context(), "ranges/none", 0, 1)
	require.ErrorIs(t, err, store.ErrNotFound)
	require.ErrorContains(t, err, "ranges/none")
}

func shortContent(t *testing.T, s store.Store) {
	for _, size := range []int64{100, multipart} {
		err := s.PutFrom(t.Context(), "short/a.bin", bytes.NewReader(body(int(size)-1, 1)), size)
		require.Error(t, err)
		require.ErrorContains(t, err, "short/a.bin")
		_, err = s.Get(t.Context(), "short/a.bin")
		require.ErrorIs(t, err, store.ErrNotFound, "no object is left")
	}
}

// tooLarge has no content to read: the store refuses the size.
func tooLarge(t *testing.T, s store.Store) {
	limit := s.MaxObject()
	require.Positive(t, limit)
	if limit == math.MaxInt64 {
		return // nothing is larger
	}
	err := s.PutFrom(t.Context(), "large/a.bin", nil, limit+1)
	require.ErrorIs(t, err, store.ErrTooLarge)
	for _, part := range []string{"large/a.bin", fmt.Sprint(limit), fmt.Sprint(limit + 1)} {
		require.ErrorContains(t, err, part)
	}
}
