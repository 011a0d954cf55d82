package activities

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/rollout"
)

func TestHeldMakesRoom(t *testing.T) {
	size := (&rollout.Episode{}).Size()
	h := newHeld(2 * size)
	some := func() []*rollout.Episode { return []*rollout.Episode{{}} }
	for _, digest := range []string{"a", "b", "b", "c"} {
		h.put(digest, some())
	}
	require.Nil(t, h.take("a"), "the one put first made room")
	require.Len(t, h.take("b"), 1)
	require.Nil(t, h.take("b"), "episodes have one owner")
	h.put("d", slices.Concat(some(), some(), some()))
	require.Nil(t, h.take("d"), "more than there is room for")
	require.Len(t, h.take("c"), 1)
	require.Zero(t, h.bytes)
}
