package bench

import (
	"context"
	"fmt"
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
