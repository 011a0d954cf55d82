package offers

import (
	"maps"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/rl/diagnose"
)

// A report survives the statistics of a manifest, with what it does not know.
func TestStatsHoldAReport(t *testing.T) {
	for _, want := range []diagnose.PropertyReport{
		{},
		{Trajectories: 64, Groups: 8, Turns: 200, Calls: 190, PositiveCalls: 40, ZeroVariance: 0.5,
			FailedInPositive: 0.25, Success: 0.125, Compared: 0.375, Invalid: 0.0625, CallsPerTrajectory: 2.96875,
			ConsecutiveHigh: 0.75, AnchorsKnown: true, EntropiesKnown: true},
		{Trajectories: 2, Groups: 1, Turns: 2, EntropiesKnown: true},
	} {
		stats := Stats(want)
		stats["rows"] = 7
		got, found := Read(stats)
		require.True(t, found)
		require.Equal(t, want, got)
	}
	partial := maps.Clone(Stats(diagnose.PropertyReport{Trajectories: 2}))
	delete(partial, "before_success")
	for _, stats := range []map[string]float64{nil, {"rows": 7}, partial} {
		_, found := Read(stats)
		require.False(t, found)
	}
}
