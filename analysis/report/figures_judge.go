package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/analysis/report/chart"
)

// judgedColors are the colours of a judge's verdicts.
var judgedColors = map[string]int{"match": 1, "mismatch": 4, "no verdict": 12}

var judged = figure{
	id: "judged", title: "A judge's verdicts", asks: []string{"judgements"}, optional: true,
	note: "Trajectories whose reward asked a judge, by its verdict. Those without a verdict are excluded and have no " +
		"reward. The others' rewards did not depend on the judge.",
	draw: func(d data, f *Figure) error {
		a := d.answers["judgements"]
		steps, verdicts, values := a.pivot("verdict", "trajectories", 0)
		slices.SortFunc(verdicts, func(x, y string) int { return judgedColors[x] - judgedColors[y] })
		var stack []chart.Series
		for _, name := range verdicts {
			stack = append(stack, chart.Series{Name: name, Color: judgedColors[name], X: steps, Y: values[name]})
		}
		thinned(chart.Chart{Title: f.Title, XLabel: "step", YLabel: "trajectories", Stack: stack}, f)
		var models []string
		for i := range a.rows() {
			if model := a.text(i, "model"); !slices.Contains(models, model) {
				models = append(models, model)
			}
		}
		f.Note += fmt.Sprintf(" The judge: %s.", strings.Join(models, ", "))
		return nil
	},
}
