package soak

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/bench"
	"github.com/ropewalk/ropewalk/sandbox"
)

// held returns samples, one per second, of the usage at second t.
func held(length time.Duration, of func(t int) bench.Usage) []sample {
	var all []sample
	for t := range int(length.Seconds()) {
		all = append(all, sample{at: time.Duration(t) * time.Second, Usage: of(t)})
	}
	return all
}

// grows reports whether the growth of a row is above its bound.
func grows(row bench.Row) bool { return row.Figures[1].Value > *row.Figures[1].Most }

func TestGrownFindsWhatGrows(t *testing.T) {
	const length = 200 * time.Second
	noise := rand.New(rand.NewPCG(1, 2))
	steady := func(t int) bench.Usage {
		return bench.Usage{Root: 100<<20 + noise.Int64N(4<<20), Others: 200<<20 + noise.Int64N(40<<20), Processes: 3 +
			noise.IntN(5),
			Zombies: noise.IntN(2), Descriptors: 60 + noise.IntN(8), Mounts: 12, Tmpfs: noise.Int64N(4 << 20)}
	}
	for _, g := range grown(held(length, steady), length) {
		require.False(t, grows(g), "%+v", g)
	}
	warming := func(t int) bench.Usage {
		u := steady(t)
		u.Root += int64(min(t, 80)) << 20 // the first half does not count
		return u
	}
	for _, g := range grown(held(length, warming), length) {
		require.False(t, grows(g), "%+v", g)
	}
	for _, c := range []struct {
		what string
		leak func(u *bench.Usage, t int)
	}{
		{"this process, MiB", func(u *bench.Usage, t int) { u.Root += int64(t) << 18 }},
		{"interpreters, MiB", func(u *bench.Usage, t int) { u.Others += int64(t) << 19 }},
		{"processes", func(u *bench.Usage, t int) { u.Processes += t / 20 }},
		{"zombies", func(u *bench.Usage, t int) { u.Zombies += t / 20 }},
		{"descriptors", func(u *bench.Usage, t int) { u.Descriptors += t / 5 }},
		{"mounts", func(u *bench.Usage, t int) { u.Mounts += t / 20 }},
		{"temporary file systems, MiB", func(u *bench.Usage, t int) { u.Tmpfs += int64(t) << 16 }},
	} {
		var found []string
		for _, g := range grown(held(length, func(t int) bench.Usage {
			u := steady(t)
			c.leak(&u, t)
			return u
		}), length) {
			if grows(g) {
				found = append(found, g.What)
			}
		}
		require.Equal(t, []string{c.what}, found)
	}
	require.Empty(t, grown(nil, length))
}

func TestLeftNamesWhatHasIncreased(t *testing.T) {
	before := bench.Usage{Processes: 1, Descriptors: 8, Mounts: 20}
	require.Empty(t, left(before, bench.Usage{Processes: 1, Descriptors: 8 + spareDescriptors, Mounts: 20,
		Root: 1 << 30}))
	require.Equal(t, []string{"2 processes, before 1", "1 zombies, before 0", "40 descriptors, before 8",
		"21 mounts, before 20"},
		left(before, bench.Usage{Processes: 2, Zombies: 1, Descriptors: 40, Mounts: 21}))
}

func TestPickFollowsWeights(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	counts := map[string]int{}
	for range 4000 {
		counts[pick(random, []kind{{name: "a", weight: 3}, {name: "b", weight: 1}}).name]++
	}
	require.InDelta(t, 3000, counts["a"], 150)
	require.Equal(t, 4000, counts["a"]+counts["b"])
}

func TestFaultComparesTheVerdict(t *testing.T) {
	good := kinds(false)[0]
	require.NoError(t, good.fault(7, sandbox.Result{Status: sandbox.StatusOK, Stdout: "7\n"}))
	require.ErrorContains(t, good.fault(7, sandbox.Result{Status: sandbox.StatusOK, Stdout: "8\n"}),
		`printed "8\n", want "7\n"`)
	require.ErrorContains(t, good.fault(7, sandbox.Result{Status: sandbox.StatusKilled}), "ended as killed")
	require.Len(t, kinds(true), len(kinds(false))+1)
}
