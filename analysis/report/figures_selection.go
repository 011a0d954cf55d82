package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/ropewalk/ropewalk/analysis/report/chart"
	"github.com/ropewalk/ropewalk/rl/resample"
)

// keptOutcome is the outcome of kept trajectories in the answer to the question outcomes.
const keptOutcome = "kept"

var funnel = figure{
	id: "funnel", title: "From sampled to trained", asks: []string{"funnel", "outcomes"}, also: []string{"updates"},
	values: "sampled", empty: noSteps,
	note: "Trajectories of all finished steps. The lower bars count dropped trajectories by reason.",
	draw: func(d data, f *Figure) error {
		a := d.answers["funnel"]
		sampled := a.number(0, "sampled")
		share := func(n float64) string { return fmt.Sprintf("(%s)", chart.Value(n/sampled, chart.Percent)) }
		bars := []chart.Bar{{Name: "sampled", Color: 1, Value: sampled}}
		if kept := a.number(0, "kept"); !math.IsNaN(kept) {
			bars = append(bars, chart.Bar{Name: "kept", Color: 1, Value: kept, Note: share(kept)})
			trained := a.number(0, "trained")
			bars = append(bars, chart.Bar{Name: "trained", Color: 1, Value: trained, Note: share(trained)})
		}
		for _, r := range dropped(d) {
			bars = append(bars, chart.Bar{Name: "– " + r.Name, Color: r.Color, Value: r.Value, Note: share(r.Value)})
		}
		if copies := a.number(0, "copies"); !math.IsNaN(copies) {
			f.Note += fmt.Sprintf(" Counted with their copies, the trained ones are %s.",
				chart.Value(copies, chart.Plain))
		}
		if d.answers["updates"].rows() == 0 {
			f.Note += " " + noUpdates
		}
		f.SVG = chart.Bars(f.Title, bars)
		return nil
	},
}

// The colours of kept trajectories, and of reasons that the program does not know, which the last known one shares.
const keptColor, unknownColor = 1, 12

// reasonColor is the colour of an outcome. A reason has the same one in every figure of every report.
func reasonColor(outcome string) int {
	if outcome == keptOutcome {
		return keptColor
	}
	if i := slices.Index(resample.RowReasons, resample.Reason(outcome)); i >= 0 {
		return keptColor + 1 + i
	}
	return unknownColor
}

// dropped counts the dropped trajectories of all steps by reason, the most frequent first.
func dropped(d data) []chart.Bar {
	_, outcomes, values := d.answers["outcomes"].pivot("outcome", "trajectories", 0)
	var out []chart.Bar
	for _, name := range outcomes {
		sum := 0.0
		for _, v := range values[name] {
			sum += v
		}
		if name != keptOutcome {
			out = append(out, chart.Bar{Name: name, Color: reasonColor(name), Value: sum})
		}
	}
	slices.SortStableFunc(out, func(a, b chart.Bar) int { return cmp.Compare(b.Value, a.Value) })
	return out
}

var outcomes = figure{
	id: "outcomes", title: "Kept and dropped per step", asks: []string{"outcomes"}, empty: noSelection,
	note: "Trajectories of each step, by whether they were kept or why they were dropped (selection.reason).",
	draw: func(d data, f *Figure) error {
		a := d.answers["outcomes"]
		steps, outcomes, values := a.pivot("outcome", "trajectories", 0)
		slices.SortStableFunc(outcomes, func(x, y string) int { return reasonColor(x) - reasonColor(y) })
		var stack []chart.Series
		for _, name := range outcomes {
			stack = append(stack, chart.Series{Name: name, Color: reasonColor(name), X: steps, Y: values[name]})
		}
		thinned(chart.Chart{Title: f.Title, XLabel: "step", YLabel: "trajectories", Stack: stack}, f)
		return nil
	},
}
