package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/analysis/compare"
	"github.com/ropewalk/ropewalk/analysis/report/chart"
	"github.com/ropewalk/ropewalk/internal/evaluation"
)

// differences is the section that says in tables how runs differ.
func differences(c *compare.Comparison) Section {
	out := Section{ID: "differences", Title: "Differences", Wide: true}
	for _, f := range []Figure{recipeDifferences(c), madeByDifferences(c), firstDifferences(c), heldOutDifferences(c),
		levelDifferences(c)} {
		if f.Empty != "" {
			out.empty = append(out.empty, f)
			continue
		}
		out.Figures = append(out.Figures, f)
	}
	return out
}

// letters are the names of the runs in the heads of tables.
func letters(c *compare.Comparison) []string {
	out := make([]string, len(c.Runs))
	for i := range out {
		out[i] = compare.Letter(i)
	}
	return out
}

func recipeDifferences(c *compare.Comparison) Figure {
	f := Figure{ID: "recipes", Title: "Recipes", Note: fmt.Sprintf("The fields of the resolved recipes that differ, "+
		"%d of %d.", len(c.Recipe.Differ), c.Recipe.Fields)}
	for i := range c.Runs {
		if words := c.Recipe.Amended(i); words != "" {
			f.Note += fmt.Sprintf(" %s was changed %s.", compare.Letter(i), words)
		}
	}
	if len(c.Recipe.Differ) == 0 {
		return f
	}
	f.Table = &Table{Text: true, Columns: slices.Concat([]string{"field", "default"}, letters(c),
		[]string{"what it is"})}
	for _, d := range c.Recipe.Differ {
		f.Table.Rows = append(f.Table.Rows, dashCells(append(d.Row(), d.Doc)))
	}
	return f
}

func madeByDifferences(c *compare.Comparison) Figure {
	f := Figure{ID: "made-by", Title: "Made by",
		Note:  "Digests of recipes, programs and first policies; engines, and what the warm starts computed with.",
		Table: &Table{Text: true, Columns: slices.Concat([]string{""}, letters(c), []string{""})}}
	for _, r := range c.Made {
		if !r.Differ && r.Values[0] == "" {
			continue
		}
		row := []string{r.Name}
		for _, v := range r.Values {
			row = append(row, compare.Short(v))
		}
		same := "the same"
		if r.Differ {
			same = "not the same"
		}
		f.Table.Rows = append(f.Table.Rows, append(dashCells(row), same))
	}
	return f
}

func firstDifferences(c *compare.Comparison) Figure {
	f := Figure{ID: "first-difference", Title: "Where the records first differ",
		Note: "The first row, in the order in which the stages ran, that is not in both records. All rows before it " +
			"are equal.",
		Table: &Table{Text: true, Columns: []string{"runs", "where", "row and columns"}}}
	for i, d := range c.Divergences {
		row := []string{"A and " + compare.Letter(i+1), d.Words(i + 1), ""}
		if d.Divergence != nil {
			for j, text := range d.Divergence.Rows(i + 1) {
				if j > 0 {
					row[2] += "; "
				}
				row[2] += text
			}
		}
		f.Table.Rows = append(f.Table.Rows, row)
	}
	return f
}

// differenceColumns head the tables of differences of success.
var differenceColumns = []string{"evaluation", "level", "problems", "runs", "success", "difference", "95% interval"}

func heldOutDifferences(c *compare.Comparison) Figure {
	f := Figure{ID: "held-out-differences", Title: "Differences of success on held-out problems",
		Note: fmt.Sprintf("In percentage points, with 95%% percentile intervals from %d bootstrap resamples. A unit "+
			"is a problem, with the difference of its two means, so that the difficulty of problems cancels.",
			evaluation.Resamples),
		Table: &Table{Columns: differenceColumns}}
	eachPair(c, func(name string, run int, d *compare.Paired) {
		f.Table.Rows = append(f.Table.Rows, differenceRow(name, "all", run, d.Difference))
		for _, part := range slices.Sorted(maps.Keys(d.ByPart)) {
			f.Table.Rows = append(f.Table.Rows, differenceRow(name, "part "+part, run, d.ByPart[part]))
		}
	})
	if len(f.Table.Rows) == 0 {
		f.Empty = "No two runs were evaluated on the same problems."
	}
	return f
}

// levelDifferences splits the differences by the level of the problems.
func levelDifferences(c *compare.Comparison) Figure {
	f := Figure{ID: "level-differences", Title: "Differences of success by level"}
	f.Table = &Table{Columns: differenceColumns}
	eachPair(c, func(name string, run int, d *compare.Paired) {
		levels := slices.Collect(maps.Keys(d.ByLevel))
		if sortNumbers(levels); len(levels) < 2 {
			return
		}
		for _, level := range levels {
			f.Table.Rows = append(f.Table.Rows, differenceRow(name, level, run, d.ByLevel[level]))
		}
	})
	if len(f.Table.Rows) == 0 {
		f.Empty = "No two runs were evaluated on the same problems of two levels or more."
	}
	f.Table.Folded = fmt.Sprintf("%d differences", len(f.Table.Rows))
	return f
}

// eachPair calls do for each evaluation of a run that can be compared with the base's.
func eachPair(c *compare.Comparison, do func(name string, run int, d *compare.Paired)) {
	for _, e := range c.Evaluations {
		for i, d := range e.Against {
			if d != nil {
				do(e.Name, i+1, d)
			}
		}
	}
}

// points writes a difference in percentage points.
func points(x float64) string { return strings.Replace(compare.Points(x), "-", "−", 1) }

func differenceRow(name, level string, run int, d evaluation.Difference) []string {
	return []string{name, level, whole(d.Problems), "A → " + compare.Letter(run),
		chart.Value(d.Before, chart.Percent) + " → " + chart.Value(d.After, chart.Percent), points(d.Mean),
		points(d.Low) + " to " + points(d.High)}
}
