package resolver

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRecentForgetsTheOldest(t *testing.T) {
	r := Recent[string, int]{Most: 2}
	made := 0
	fresh := func() int { made++; return made }
	require.Equal(t, 1, r.Get("a", fresh))
	require.Equal(t, 2, r.Get("b", fresh))
	require.Equal(t, 1, r.Get("a", fresh), "it is remembered, and the latest now")
	r.put("c", 9)
	_, ok := r.find("b")
	require.False(t, ok)
	v, ok := r.find("a")
	require.True(t, ok)
	require.Equal(t, 1, v)
	for i := range 1000 {
		r.put(strconv.Itoa(i), i)
	}
	require.Len(t, r.order, 2)
	require.Len(t, r.values, 2)
}
