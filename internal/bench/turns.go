package bench

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"
)

// Side is one of the things that are compared.
type Side[T any] struct {
	Name string
	// Measure takes one measurement.
	Measure func(ctx context.Context) (T, error)
}

// TakeTurns has the sides measure in turn, round after round, while more returns true for the number of finished
// rounds. It returns a list for each side, which has one measurement for each round. An error names the side.
func TakeTurns[T any](ctx context.Context, more func(rounds int) bool, sides ...Side[T]) ([][]T, error) {
	found := make([][]T, len(sides))
	for round := 0; more(round); round++ {
		for i, s := range sides {
			one, err := s.Measure(ctx)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", s.Name, err)
			}
			found[i] = append(found[i], one)
		}
	}
	return found, nil
}

// Rounds asks for a number of rounds.
func Rounds(n int) func(int) bool { return func(done int) bool { return done < n } }

// AtLeast asks for a number of rounds that also fill a time, which counts from this call.
func AtLeast(n int, least time.Duration) func(int) bool {
	began := time.Now()
	return func(done int) bool { return done < n || time.Since(began) < least }
}

// Ratio is the median of the ratios of two sides, round by round. It is less sensitive to other load than a ratio of
// medians.
func Ratio(a, b []float64) float64 {
	ratios := make([]float64, len(a))
	for i := range a {
		ratios[i] = a[i] / b[i]
	}
	return Median(ratios)
}

// Column is one field of a side's measurements.
func Column[T any](measured []T, field func(T) float64) []float64 {
	out := make([]float64, len(measured))
	for i, m := range measured {
		out[i] = field(m)
	}
	return out
}

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
