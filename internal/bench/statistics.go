package bench

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// Quantile is the nearest-rank quantile of sorted, non-empty values: the least value that a share q of them does not
// exceed.
func Quantile[T cmp.Ordered](sorted []T, q float64) T {
	rank := int(math.Ceil(q * float64(len(sorted))))
	return sorted[min(max(rank, 1), len(sorted))-1]
}

// Median is the middle of non-empty values, or the mean of the two middle ones if their number is even. It does not
// change values.
func Median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	half := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[half]
	}
	return (sorted[half-1] + sorted[half]) / 2
}

// Slope is the median of the slopes between any two points (Theil 1950, Sen 1968): unlike least squares it tolerates
// outliers in almost a third of the points. It is 0 if no two points differ in x.
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

// Milliseconds is a duration in milliseconds, rounded down to a microsecond.
func Milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
