package zygote

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLookoutLearns(t *testing.T) {
	var l lookout
	skipped := func() (n int) {
		for !l.looks() {
			n++
		}
		return n
	}
	require.Zero(t, skipped(), "the first is looked out for")
	for _, want := range []int{1, 2, 4, 8, 16, 32, 64, 64} {
		l.learn(false)
		require.Equal(t, want, skipped())
	}
	l.learn(true)
	require.Zero(t, skipped())
	l.learn(false)
	require.Equal(t, 1, skipped())
}
