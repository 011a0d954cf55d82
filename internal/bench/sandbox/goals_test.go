package main

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestGoalsThatWereNotMeasuredAreNotMet(t *testing.T) {
	all := goals(&result{})
	require.NotEmpty(t, all)
	for _, g := range all {
		require.Nil(t, g.Measured, g.What)
		require.False(t, g.Met, g.What)
		require.Equal(t, "not measured", g.outcome(), g.What)
	}
}

func TestGoalsCompareFiguresWithBounds(t *testing.T) {
	r := &result{LimitRatio: pointer(0.85), PeerRatio: pointer(4.4), Latency2: &latency{P50: 1.5, P99: 5.1},
		StuckLoss: pointer(0),
		Burst:     &burst{Calls: 10, Answered: 9}}
	met := map[string]bool{}
	for _, g := range goals(r) {
		if g.Measured != nil {
			met[g.What] = g.Met
		}
	}
	require.Equal(t, map[string]bool{
		"stateless calls/s over the limit's":               true,
		"stateless calls/s over the best isolated peer's":  false,
		"latency p50 at 2 in flight, ms":                   true,
		"latency p99 at 2 in flight, ms":                   false,
		"good calls' loss to endless loops":                true,
		"burst: share of calls that got their own verdict": false,
	}, met)
}

// constant is a side that always has the same rate.
func constant(name string, isolated bool, rate float64) side {
	return side{name: name, isolated: isolated,
		measure: func(context.Context, time.Duration) (float64, error) { return rate, nil }}
}

func TestRatesCompareWithTheFastestIsolatedPeer(t *testing.T) {
	sides := []side{constant(ours, true, 900), constant(theLimit, false, 1000), constant("box", true, 150),
		constant("slow box", true, 10), constant("none", false, 300)}
	rates, err := interleave(t.Context(), sides, 3, time.Millisecond)
	require.NoError(t, err)
	r := &result{}
	r.rates(sides, rates)
	require.Equal(t, 900.0, *r.Stateless)
	require.Equal(t, 0.9, *r.LimitRatio)
	require.Equal(t, 6.0, *r.PeerRatio)
	require.Equal(t, map[string]float64{"box": 150, "slow box": 10, "none": 300}, r.Peers)

	alone := &result{}
	alone.rates(sides[:1], map[string][]float64{ours: {900, 900}})
	require.Nil(t, alone.Limit)
	require.Nil(t, alone.PeerRatio)
}

func TestPartsThatFailLeaveTheReason(t *testing.T) {
	for _, args := range [][]string{{"-only", "sped"}, {"-rounds", "0"}, {"-round", "-1s"}} {
		_, err := parse(args)
		require.Error(t, err, args)
	}
	o, err := parse([]string{"-only", "cold", "-program", "/nowhere/ropewalk"})
	require.NoError(t, err)
	b := benchmark{options: o, result: &result{Absent: map[string]string{}}}
	require.Empty(t, b.measure(t.Context()))
	require.Equal(t, "/nowhere/ropewalk is not there (make build)", b.result.Absent["cold_start_ms"])
	require.Equal(t, "not asked for", b.result.Absent["burst"])
}
