package overlay_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/testing/storetest"
	"github.com/ropewalk/ropewalk/store"
	"github.com/ropewalk/ropewalk/store/mem"
	"github.com/ropewalk/ropewalk/store/overlay"
)

func TestConformance(t *testing.T) {
	storetest.Run(t, func(*testing.T) store.Store { return overlay.New(mem.New()) })
}

func TestTheBaseIsSeenAndNeverWritten(t *testing.T) {
	ctx := t.Context()
	base := mem.New()
	require.NoError(t, base.Put(ctx, "a/1", []byte("one")))
	require.NoError(t, base.Put(ctx, "a/2", []byte("two")))
	s := overlay.New(base)

	require.ErrorIs(t, s.PutIfAbsent(ctx, "a/1", []byte("other")), store.ErrExists)
	require.NoError(t, s.PutIfAbsent(ctx, "a/1", []byte("one")), "its own success is recognised")
	require.NoError(t, s.Put(ctx, "a/0", []byte("zero")))
	require.NoError(t, s.Delete(ctx, "a/2"))
	listed, err := s.List(ctx, "a/")
	require.NoError(t, err)
	require.Equal(t, []store.Object{{Key: "a/0", Size: 4}, {Key: "a/1", Size: 3}}, ageless(listed))
	_, err = s.Get(ctx, "a/2")
	require.ErrorIs(t, err, store.ErrNotFound)
	require.NoError(t, s.PutIfAbsent(ctx, "a/2", []byte("new")))
	data, err := s.Get(ctx, "a/2")
	require.NoError(t, err)
	require.Equal(t, "new", string(data))

	beneath, err := base.List(ctx, "")
	require.NoError(t, err)
	require.Equal(t, []store.Object{{Key: "a/1", Size: 3}, {Key: "a/2", Size: 3}}, ageless(beneath))
	data, err = base.Get(ctx, "a/2")
	require.NoError(t, err)
	require.Equal(t, "two", string(data))
}

// ageless returns the objects without their times.
func ageless(listed []store.Object) []store.Object {
	for i := range listed {
		listed[i].Modified = time.Time{}
	}
	return listed
}
