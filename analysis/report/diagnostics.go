package report

import (
	"slices"
	"strconv"

	"github.com/ropewalk/ropewalk/analysis/report/chart"
)

// diagnosticsID names the section of the statistics of rl/diagnose.
const diagnosticsID = "diagnostics"

// diagnostics draws each diagnosis that the record holds the data of, and says of the others why not.
func (d data) diagnostics() Section {
	out := Section{ID: diagnosticsID, Title: "Diagnostics"}
	missing := Figure{ID: "not-told", Title: "What this record cannot tell", Table: &Table{Columns: []string{"diagnosis", "why not"}}}
	for _, f := range slices.Concat(d.groupDiagnostics(), d.toolDiagnostics(), d.updateDiagnostics(), d.tokenDiagnostics()) {
		if f.Empty != "" {
			missing.Table.Rows = append(missing.Table.Rows, []string{f.Title, f.Empty})
			continue
		}
		out.Figures = append(out.Figures, f)
	}
	missing.Table.Rows = append(missing.Table.Rows, neverTold...)
	missing.Note = "Diagnoses of which the run did not record what they need."
	out.Figures = append(out.Figures, missing)
	return out
}

// neverTold are diagnoses of what no record holds.
var neverTold = [][]string{
	{"Branches per trajectory", "Trajectories are sampled by themselves; the record has no parents."},
	{"Step advantages beside episode advantages", "The batch holds their sum alone."},
	{"Probabilities of VSPO's draws", "The selection holds scores, counts and weights."},
}

// byStep gathers rows of an answer, which are in the order of the steps, one gathering a step.
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

// one makes a fresh zero value.
func one[T any]() *T { return new(T) }

// each is one figure of every report.
func each[T any](reports []T, figure func(T) float64) []float64 {
	out := make([]float64, len(reports))
	for i, r := range reports {
		out[i] = figure(r)
	}
	return out
}

// reports are those of every gathering.
func reports[T, R any](all []T, report func(T) R) []R {
	out := make([]R, len(all))
	for i, g := range all {
		out[i] = report(g)
	}
	return out
}

// told are the reports of a diagnosis, one a step.
type told[R any] struct {
	steps   []float64
	reports []R
	err     error
}

// tells reports whether there is something to draw, and else says in the figure why not.
func (t told[R]) tells(f *Figure, empty string) bool {
	switch {
	case t.err != nil:
		*f = f.refused(t.err)
	case len(t.steps) == 0:
		f.Empty = empty
	}
	return f.Empty == ""
}

// refused is a figure of numbers that a diagnosis does not take.
func (f Figure) refused(err error) Figure {
	f.Empty = "The record's numbers cannot be used: " + err.Error()
	return f
}

// count is a cell as a whole number; 0 of null.
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
