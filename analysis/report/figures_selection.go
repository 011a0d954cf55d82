package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/ropewalk/ropewalk/analysis/report/chart"
)

// keptOutcome is how the question outcomes names what was kept.
const keptOutcome = "kept"

func (d data) funnel() Figure {
	f := d.figure("funnel", "From sampled to trained", "funnel", "outcomes")
	a := d.answers["funnel"]
	if a.rows() == 0 || !known(a.column("sampled")) {
		f.Empty = noSteps
		return f
	}
	sampled := a.number(0, "sampled")
	share := func(n float64) string { return fmt.Sprintf("(%s)", chart.Value(n/sampled, chart.Percent)) }
	bars := []chart.Bar{{Name: "sampled", Color: 1, Value: sampled}}
	if kept := a.number(0, "kept"); !math.IsNaN(kept) {
		bars = append(bars, chart.Bar{Name: "kept", Color: 1, Value: kept, Note: share(kept)})
		trained := a.number(0, "trained")
		bars = append(bars, chart.Bar{Name: "trained", Color: 1, Value: trained, Note: share(trained)})
	}
	for _, r := range d.dropped() {
		bars = append(bars, chart.Bar{Name: "– " + r.Name, Color: r.Color, Value: r.Value, Note: share(r.Value)})
	}
	f.Note = "Trajectories of all finished steps; the lower bars say why the others were dropped."
	if copies := a.number(0, "copies"); !math.IsNaN(copies) {
		f.Note += fmt.Sprintf(" Those trained count as %s copies.", chart.Value(copies, chart.Plain))
	}
	if d.answers["updates"].rows() == 0 {
		f.Note += " " + noUpdates
	}
	f.SVG = chart.Bars(f.Title, bars)
	return f
}

// dropped sums the reasons over the steps, the greatest first, coloured as in the figure by step.
func (d data) dropped() []chart.Bar {
	_, outcomes, values := d.answers["outcomes"].pivot("outcome", "trajectories", 0)
	var out []chart.Bar
	for _, name := range outcomes {
		sum := 0.0
		for _, v := range values[name] {
			sum += v
		}
		if name != keptOutcome {
			out = append(out, chart.Bar{Name: name, Color: 2 + len(out)%(colors-1), Value: sum})
		}
	}
	slices.SortStableFunc(out, func(a, b chart.Bar) int { return cmp.Compare(b.Value, a.Value) })
	return out
}

func (d data) outcomes() Figure {
	f, a, ok := d.asked("outcomes", "Kept and dropped per step", "outcomes", "No selection is committed: the steps so far had no resampling.")
	if !ok {
		return f
	}
	steps, outcomes, values := a.pivot("outcome", "trajectories", 0)
	var stack []chart.Series
	if kept := values[keptOutcome]; kept != nil {
		stack = append(stack, chart.Series{Name: keptOutcome, Color: 1, X: steps, Y: kept})
	}
	color := 2
	for _, name := range outcomes {
		if name != keptOutcome {
			stack = append(stack, chart.Series{Name: name, Color: color, X: steps, Y: values[name]})
			color = 2 + (color-1)%(colors-1)
		}
	}
	f.Note = "What became of the trajectories of each step, by selection.reason."
	thinned(chart.Chart{Title: f.Title, XLabel: "step", YLabel: "trajectories", Stack: stack}, &f)
	return f
}

func (d data) variance() Figure {
	f, a, ok := d.asked("variance", "Groups without variance per step", "variance", "No selection is committed: the steps so far had no resampling.")
	if !ok {
		return f
	}
	f.Note = "A group whose rewards are all equal teaches nothing: its advantages are 0. The line counts all groups."
	thinned(chart.Chart{Title: f.Title, XLabel: "step", YLabel: "groups", Stack: []chart.Series{
		{Name: "equal, rewarded", Color: 3, X: a.steps(), Y: a.column("equal_positive")},
		{Name: "equal, unrewarded", Color: 4, X: a.steps(), Y: a.column("equal_negative")},
	}, Lines: []chart.Series{{Name: "all groups", Color: 1, X: a.steps(), Y: a.column("groups"), Dashed: true}}}, &f)
	return f
}

func (d data) toolErrors() Figure {
	f := d.figure("tool-errors", "Tool errors in positive trajectories", "tool_errors")
	a := d.answers["tool_errors"]
	positive, negative := a.column("positive"), a.column("negative")
	switch {
	case a.rows() == 0:
		f.Empty = noSteps
		return f
	case !known(positive) && !known(negative):
		f.Empty = "No trajectory called a tool."
		return f
	}
	f.Note = "Share of tool calls that failed, inside trajectories with a positive reward; the others for comparison."
	thinned(chart.Chart{Title: f.Title, XLabel: "step", YLabel: "failed calls", Unit: chart.Percent, FromZero: true, Lines: []chart.Series{
		{Name: "reward > 0", Color: 1, X: a.steps(), Y: positive},
		{Name: "reward ≤ 0", Color: 2, X: a.steps(), Y: negative, Dashed: true},
	}}, &f)
	return f
}
