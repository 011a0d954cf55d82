package analysis_test

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/analysis"
)

func TestPassHatK(t *testing.T) {
	for _, c := range []struct {
		name  string
		tasks []analysis.Trials
		want  []float64
	}{
		{"no tasks", nil, nil},
		{"one trial", []analysis.Trials{{N: 1, Successes: 1}, {N: 1}}, []float64{0.5}},
		{"two of four", []analysis.Trials{{N: 4, Successes: 2}}, []float64{0.5, 1.0 / 6, 0, 0}},
		{"all and none", []analysis.Trials{{N: 3, Successes: 3}, {N: 3}}, []float64{0.5, 0.5, 0.5}},
		{"the least number of trials bounds k", []analysis.Trials{{N: 5, Successes: 5}, {N: 2, Successes: 1}},
			[]float64{0.75, 0.5}},
		{"a task without trials", []analysis.Trials{{N: 0}, {N: 2, Successes: 1}}, []float64{}},
		// 50 tasks of tau-bench's airline domain, four trials each of gpt-4o: its authors print 0.420, 0.273, 0.220,
		// 0.200.
		{"tau-bench", airline(), []float64{0.42, 41.0 / 150, 0.22, 0.2}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := analysis.PassHatK(c.tasks)
			require.NoError(t, err)
			require.Len(t, got, len(c.want))
			require.InDeltaSlice(t, c.want, got, 1e-12)
		})
	}
}

// airline are the successes of the 50 tasks.
func airline() []analysis.Trials {
	var out []analysis.Trials
	for successes, tasks := range []int{14, 12, 10, 4, 10} {
		for range tasks {
			out = append(out, analysis.Trials{N: 4, Successes: successes})
		}
	}
	return out
}

// The estimate is the share of all k-subsets of the trials that succeed whole.
func TestPassHatKCountsSubsets(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for n := 1; n <= 9; n++ {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			tasks := make([]analysis.Trials, 7)
			won := make([]uint, len(tasks)) // a bit a trial
			for i := range tasks {
				won[i] = uint(r.Uint32()) & (1<<n - 1)
				tasks[i] = analysis.Trials{N: n, Successes: bits.OnesCount(won[i])}
			}
			passes, err := analysis.PassHatK(tasks)
			require.NoError(t, err)
			for k, got := range passes {
				want := 0.0
				for _, w := range won {
					subsets, whole := 0, 0
					for s := range uint(1) << n {
						if bits.OnesCount(s) == k+1 {
							subsets++
							if s&w == s {
								whole++
							}
						}
					}
					want += float64(whole) / float64(subsets) / float64(len(tasks))
				}
				require.InDelta(t, want, got, 1e-12, "k = %d", k+1)
			}
		})
	}
}

// Thousands of trials neither overflow nor lose the estimate.
func TestPassHatKOfManyTrials(t *testing.T) {
	got, err := analysis.PassHatK([]analysis.Trials{{N: 5000, Successes: 4999}})
	require.NoError(t, err)
	require.Len(t, got, 5000)
	require.InDelta(t, 1-2500.0/5000, got[2499], 1e-9) // the one failure is outside the k drawn
	require.Zero(t, got[4999])
}
