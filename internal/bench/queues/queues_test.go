package main

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// hand is a case of two workers for one shard each, of 10 and 5 tokens a second, and of shards of 1,000 tokens. A
// segment has 100 tokens.
func hand(shards int) scenario {
	never := math.Inf(1)
	c := scenario{name: "hand", queues: []worker{{10, 1, never, never, 100}, {5, 1, never, never, 100}}}
	for range shards {
		c.shards = append(c.shards, 1000)
	}
	return c
}

// Three shards take 100 s on the fast worker and 200 s on the slow one. Spread, the fast one has two. Split equally,
// consecutive shards go to the fast worker first; by speed, too.
func TestByHand(t *testing.T) {
	c := hand(3)
	r, err := compare(c)
	require.NoError(t, err)
	require.Equal(t, []int{2, 1}, equalShares(c))
	require.Equal(t, []int{2, 1}, sharesBySpeed(c))
	require.Equal(t, []float64{200, 200, 200, 200}, []float64{r.Bound, r.Spread.Makespan, r.Equal, r.BySpeed})

	c = hand(6) // 400 s spread; split equally, the slow worker has three for 600 s
	r, err = compare(c)
	require.NoError(t, err)
	require.Equal(t, []int{4, 2}, sharesBySpeed(c))
	require.Equal(t, []float64{400, 400, 600, 400}, []float64{r.Bound, r.Spread.Makespan, r.Equal, r.BySpeed})
	require.Zero(t, r.Spread.Again)
}

// The fast worker is killed after 45 s: four segments of its shard are committed, and 50 tokens are lost. After ten
// seconds of silence the queue is lost. The slow worker ends its own shard at 200 s and the rest of the other 120 s
// later. A split has the same rest at once, after the slow worker's own.
func TestALostWorkerByHand(t *testing.T) {
	c := hand(2).loses(0, 45, math.Inf(1))
	r, err := compare(c)
	require.NoError(t, err)
	require.Equal(t, 320.0, r.Spread.Makespan)
	require.Equal(t, 1, r.Spread.Again)
	require.Equal(t, 50, r.Spread.most)
	require.InDelta(t, 50.0/2000, r.Spread.Repeated, 1e-12)
	require.InDelta(t, 320, r.Equal, 1e-6)
	require.InDelta(t, 45+(2000-45*15)/5.0, r.Bound, 1e-9)

	// It is back at 100 s: its queue joins again and takes the rest, 600 tokens.
	r, err = compare(hand(2).loses(0, 45, 100))
	require.NoError(t, err)
	require.Equal(t, 200.0, r.Spread.Makespan)
	require.InDelta(t, 320, r.Equal, 1e-6, "a split gives a worker that is back nothing")

	// It is back before its silence is noticed.
	r, err = compare(hand(2).loses(0, 45, 50))
	require.NoError(t, err)
	require.Equal(t, 200.0, r.Spread.Makespan)
}

// Whatever the workers do, every shard ends, no earlier than the bound, the same case gives the same figures, and an
// attempt that is lost or given up loses less than a segment.
func TestSpreadRollouts(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 19))
		speeds := []float64{1}
		for range 1 + rng.IntN(4) {
			speeds = append(speeds, []float64{1, 0.7, 0.3, 0.1}[rng.IntN(4)])
		}
		c := of("random", 1+rng.IntN(60), speeds...)
		for q := 1; q < len(speeds); q++ {
			if at := 300 * rng.Float64(); rng.IntN(3) == 0 {
				c = c.loses(q, at, at+[]float64{3, 30, math.Inf(1)}[rng.IntN(3)])
			}
		}
		r, err := compare(c)
		require.NoError(t, err, "seed %d", seed)
		again, err := compare(c)
		require.NoError(t, err)
		require.Equal(t, r, again)
		for _, makespan := range []float64{r.Spread.Makespan, r.Equal, r.BySpeed} {
			require.GreaterOrEqual(t, makespan, r.Bound*(1-1e-9), "seed %d", seed)
		}
		require.Less(t, r.Spread.most, segment)
	}
}

func TestTable(t *testing.T) {
	var b strings.Builder
	print(&b, []result{{Case: "a", Spread: outcome{Makespan: 3}, Over: 1.5, GainFrom: 2, GainBest: 1}})
	require.Contains(t, b.String(),
		"medians: 1.50 over the bound; an equal split takes 2.00 times as long, one by speed 1.00\n")
}
