package diagnose_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/rl/diagnose"
)

// The values follow from the formula by hand: at shares of 0 and 1 one end is z²/(n+z²) from the share.
func TestWilson(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		share     float64
		n         int
		low, high float64
	}{
		{0, 10, 0, 0.277533},
		{1, 10, 0.722467, 1},
		{0.5, 10, 0.236593, 0.763407},
		{0, 1, 0, 0.793450},
		{0, 0, 0, 1},
	} {
		low, high := diagnose.Wilson(c.share, c.n)
		require.InDelta(t, c.low, low, 1e-6, c)
		require.InDelta(t, c.high, high, 1e-6, c)
	}
}
