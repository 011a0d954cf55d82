package report

import (
	"maps"
	"math"
	"slices"

	"github.com/ropewalk/ropewalk/analysis/report/chart"
)

// Success by part of a mix of environments. Other runs have no parts, so the figures are left out of their pages.

var trainingParts = figure{
	id: "parts", title: "Success by part of the mix, in training", asks: []string{"parts"}, optional: true,
	note: "Share of sampled trajectories that solved their problem, by the environment that it comes from.",
	draw: func(d data, f *Figure) error {
		steps, parts, values := d.answers["parts"].pivot("part", "success", math.NaN())
		slices.Sort(parts)
		var lines []chart.Series
		for i, part := range parts {
			lines = append(lines, chart.Series{Name: part, Color: 1 + i%colors, X: steps, Y: values[part]})
		}
		thinned(chart.Chart{Title: f.Title, XLabel: "step", YLabel: "success", Unit: chart.Percent, Lines: lines}, f)
		return nil
	},
}

var evaluationParts = figure{
	id: "evaluation-parts", title: "Success by part of the mix, held-out problems", asks: []string{"part_evaluations"},
	optional: true,
	note: "Sampled success, with 95% bootstrap intervals over problems. Step 0 is the policy before the first " +
		"step.",
	draw: func(d data, f *Figure) error {
		a := d.answers["part_evaluations"]
		parts := map[string]bool{}
		for i := range a.rows() {
			parts[a.text(i, "level")] = true
		}
		var lines []chart.Series
		for i, part := range slices.Sorted(maps.Keys(parts)) {
			s := evaluatedIn(d, a, part, "part "+part)
			s.Name, s.Color = part, 1+i%colors
			lines = append(lines, s)
		}
		thinned(chart.Chart{Title: f.Title, XLabel: "step", YLabel: "success", Unit: chart.Percent, Lines: lines}, f)
		return nil
	},
}
