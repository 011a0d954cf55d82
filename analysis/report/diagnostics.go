package report

import (
	"strconv"

	"github.com/ropewalk/ropewalk/analysis/report/chart"
)

// byStep collects the rows of an answer, which are in the order of the steps, into one T per step.
func byStep[T any](a answer, fresh func() T, add func(g T, row int) error) (steps []float64, all []T, err error) {
	for i, step := range a.steps() {
		if len(steps) == 0 || steps[len(steps)-1] != step {
			steps, all = append(steps, step), append(all, fresh())
		}
		if err := add(all[len(all)-1], i); err != nil {
			return nil, nil, err
		}
	}
	return steps, all, nil
}

// one returns a new zero value.
func one[T any]() *T { return new(T) }

// each returns one figure of every report.
func each[T any](reports []T, figure func(T) float64) []float64 {
	out := make([]float64, len(reports))
	for i, r := range reports {
		out[i] = figure(r)
	}
	return out
}

// reports returns the report of each step's data.
func reports[T, R any](all []T, report func(T) R) []R {
	out := make([]R, len(all))
	for i, g := range all {
		out[i] = report(g)
	}
	return out
}

// stepReports are the reports of a diagnosis, one a step.
type stepReports[R any] struct {
	steps   []float64
	reports []R
}

// count returns a cell as a whole number, 0 for null.
func (a answer) count(row int, column string) int {
	n := a.number(row, column)
	if n != n {
		return 0
	}
	return int(n)
}

func whole(n int) string            { return strconv.Itoa(n) }
func percent(share float64) string  { return chart.Value(share, chart.Percent) }
func plainNumber(v float64) string  { return chart.Value(v, chart.Plain) }
func millis(seconds float64) string { return chart.Value(1000*seconds, chart.Milliseconds) }
