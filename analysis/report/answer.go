package report

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/ropewalk/ropewalk/analysis/report/chart"
	"github.com/ropewalk/ropewalk/analysis/sql"
)

// answer reads a query's result by the names of its columns.
type answer struct{ sql.Result }

// rows returns the number of rows.
func (a answer) rows() int { return len(a.Rows) }

// at returns a cell's value. A column that the question does not select is a mistake in this program.
func (a answer) at(row int, column string) any {
	i := slices.Index(a.Columns, column)
	if i < 0 {
		panic("the question has no column " + column)
	}
	return a.Rows[row][i]
}

// number returns a cell as a number, NaN for null and for other types.
func (a answer) number(row int, column string) float64 {
	switch x := a.at(row, column).(type) {
	case float64:
		return x
	case int32:
		return float64(x)
	case int64:
		return float64(x)
	case json.Number:
		v, err := x.Float64()
		if err != nil {
			return math.NaN()
		}
		return v
	}
	return math.NaN()
}

// count returns a cell as a whole number, 0 for null.
func (a answer) count(row int, column string) int {
	n := a.number(row, column)
	if math.IsNaN(n) {
		return 0
	}
	return int(n)
}

// text returns a cell as text, "" for null.
func (a answer) text(row int, column string) string {
	switch x := a.at(row, column).(type) {
	case nil:
		return ""
	case string:
		return x
	case float64:
		return strconv.FormatFloat(x, 'g', 6, 64)
	default:
		return fmt.Sprint(x)
	}
}

// column returns a column as numbers.
func (a answer) column(name string) []float64 {
	out := make([]float64, a.rows())
	for i := range out {
		out[i] = a.number(i, name)
	}
	return out
}

// steps returns the column step, with 0 for null: what was made before the first step.
func (a answer) steps() []float64 {
	out := a.column("step")
	for i, x := range out {
		if math.IsNaN(x) {
			out[i] = 0
		}
	}
	return out
}

// kinds returns the different texts of a column, in their order.
func (a answer) kinds(column string) (out []string) {
	for i := range a.rows() {
		if kind := a.text(i, column); !slices.Contains(out, kind) {
			out = append(out, kind)
		}
	}
	sortNumbers(out)
	return out
}

// known reports whether any of the values is a number.
func known(values []float64) bool { return len(numbers(values)) > 0 }

// numbers returns the values without NaN.
func numbers(values []float64) []float64 {
	return slices.DeleteFunc(slices.Clone(values), math.IsNaN)
}

// sum adds the values up; those that are missing count as 0.
func sum(values []float64) (out float64) {
	for _, v := range numbers(values) {
		out += v
	}
	return out
}

// pivot spreads a column's values by the keys of another: for each key, in order, one value a step, and absent where a
// step has none.
func (a answer) pivot(key, value string, absent float64) (steps []float64, keys []string, values map[string][]float64) {
	at := map[float64]int{}
	for _, x := range a.steps() {
		if _, ok := at[x]; !ok {
			at[x] = len(steps)
			steps = append(steps, x)
		}
	}
	keys, values = a.kinds(key), map[string][]float64{}
	for _, k := range keys {
		values[k] = slices.Repeat([]float64{absent}, len(steps))
	}
	for i, x := range a.steps() {
		values[a.text(i, key)][at[x]] = a.number(i, value)
	}
	return steps, keys, values
}

// table writes the answer out, its numbers in units and everything else as text.
func (a answer) table(units map[string]chart.Unit) *Table {
	t := &Table{Columns: a.Columns}
	for i := range a.rows() {
		row := make([]string, len(a.Columns))
		for j, column := range a.Columns {
			row[j] = a.text(i, column)
			if n := a.number(i, column); !math.IsNaN(n) {
				row[j] = chart.Value(n, units[column])
			}
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

func whole(n int) string           { return strconv.Itoa(n) }
func percent(share float64) string { return chart.Value(share, chart.Percent) }
func plainNumber(v float64) string { return chart.Value(v, chart.Plain) }
