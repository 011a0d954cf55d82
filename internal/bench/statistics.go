package bench

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// Quantile is the nearest-rank one of sorted, non-empty values: the least that a share q of them does not exceed.
func Quantile[T cmp.Ordered](sorted []T, q float64) T {
	rank := int(math.Ceil(q * float64(len(sorted))))
	return sorted[min(max(rank, 1), len(sorted))-1]
}

// Median is the middle one of non-empty values, the mean of the two middle ones where their number is even. It leaves
// values as they are.
func Median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	half := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[half]
	}
	return (sorted[half-1] + sorted[half]) / 2
}

// Slope is the median of the slopes between any two points (Theil 1950, Sen 1968): unlike least squares it holds
// against a third of the points being outliers. It is 0 where no two points differ in x.
func Slope(x, y []float64) float64 {
	var slopes []float64
	for i := range x {
		for j := range i {
			if x[i] != x[j] {
				slopes = append(slopes, (y[i]-y[j])/(x[i]-x[j]))
			}
		}
	}
	if len(slopes) == 0 {
		return 0
	}
	return Median(slopes)
}

// Milliseconds is a duration to the microsecond.
func Milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
