package evaluation

import (
	"slices"

	"github.com/ropewalk/ropewalk/internal/seed"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/rl/diagnose"
)

// Resamples is the number of resamples of the bootstrap: enough for the second digit of a 95% interval.
const Resamples = 2000

// Rate returns the mean success of problems and its 95% interval. Each problem counts with the mean of its samples; the
// order of the problems does not matter. The interval is the bootstrap's, drawn with the run's seed and a label (all,
// or a level's number). If all means are 0 or all are 1, resampling shows no spread, and the interval is Wilson's for
// that many problems. The manifest, the record's readers and the report use this function, so they show the same.
func Rate(means []float64, runSeed uint64, label string) api.Rate {
	if len(means) == 0 {
		return api.Rate{}
	}
	sorted := slices.Sorted(slices.Values(means))
	mean, low, high := diagnose.Bootstrap(sorted, Resamples, seed.Rand("bootstrap/"+label, runSeed))
	rate := api.Rate{Success: mean, CILow: low, CIHigh: high, N: len(means)}
	if first, last := sorted[0], sorted[len(sorted)-1]; first == last && (first == 0 || first == 1) {
		rate.CILow, rate.CIHigh = diagnose.Wilson(first, len(means))
	}
	return rate
}
