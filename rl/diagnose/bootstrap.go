package diagnose

import (
	"math"
	"math/rand/v2"
	"slices"
)

// Bootstrap returns the mean of the units and its 95% percentile interval (Efron 1979) from
// resamples draws with replacement. No units give NaN; one unit gives an interval of no width.
func Bootstrap(units []float64, resamples int, rng *rand.Rand) (mean, low, high float64) {
	if len(units) == 0 {
		return math.NaN(), math.NaN(), math.NaN()
	}
	for _, u := range units {
		mean += u
	}
	mean /= float64(len(units))
	means := make([]float64, max(resamples, 1))
	for i := range means {
		sum := 0.0
		for range units {
			sum += units[rng.IntN(len(units))]
		}
		means[i] = sum / float64(len(units))
	}
	slices.Sort(means)
	return mean, quantile(means, 0.025), quantile(means, 0.975)
}

// quantile interpolates linearly between order statistics (type 7 of Hyndman & Fan 1996).
func quantile(sorted []float64, q float64) float64 {
	at := q * float64(len(sorted)-1)
	i := int(at)
	if i+1 == len(sorted) {
		return sorted[i]
	}
	return sorted[i] + (at-float64(i))*(sorted[i+1]-sorted[i])
}
