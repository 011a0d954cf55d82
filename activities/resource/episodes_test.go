package resource

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/rollout"
)

func TestHeldMakesRoom(t *testing.T) {
	size := (&rollout.Episode{}).Size()
	h := NewEpisodes(2 * size)
	some := func() []*rollout.Episode { return []*rollout.Episode{{}} }
	for _, digest := range []string{"a", "b", "b", "c"} {
		h.Put(digest, some())
	}
	require.Nil(t, h.Take("a"), "the one put first made room")
	require.Len(t, h.Take("b"), 1)
	require.Nil(t, h.Take("b"), "episodes have one owner")
	h.Put("d", slices.Concat(some(), some(), some()))
	require.Nil(t, h.Take("d"), "more than there is room for")
	require.Len(t, h.Take("c"), 1)
	require.Zero(t, h.bytes)
}
