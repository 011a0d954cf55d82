package report

import (
	"slices"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/analysis/report/chart"
	"github.com/ropewalk/ropewalk/rl/diagnose"
)

// Figure is one figure of the page and the questions that it is drawn from.
type Figure struct {
	ID, Title string
	Note      string // how to read it
	Empty     string // why there is nothing to draw
	SVG       string
	Legend    []chart.Key
	Table     *Table
	Questions []Question
}

// Table is a small table of text.
type Table struct {
	Columns []string
	Rows    [][]string
	Text    bool   // texts, not numbers
	Folded  string // what a reader opens to see the rows; "" shows them
}

func (f *Figure) draw(c chart.Chart) { f.SVG, f.Legend = c.SVG(), c.Legend() }

// data is what figures are drawn from.
type data struct {
	run       analysis.Run
	origin    *analysis.Origin // nil for a run that has committed nothing yet
	questions map[string]Question
	answers   map[string]answer
	tokens    []stepTokens // of a few steps, in their order
	// offered is what the world offers before training; nil for a run without a finished step.
	offered *diagnose.PropertyReport
	// cold compares the policies before and after the warm start; nil if the run measures only the latter.
	cold *analysis.ColdStart
}

// figure declares one figure: the questions it asks, why it can be empty, how to read it, and how to draw it.
type figure struct {
	id, title string
	asks      []string // questions by name; the page shows their SQL
	also      []string // questions that only the note needs
	values    string   // a column of the first question; without a number in it the figure is empty
	empty     string   // the reason given where the first question has no rows; "" leaves that case to draw
	note      string   // draw may add to it
	optional  bool     // left out of the page, instead of shown as empty, where the first question has no rows

	// draw fills in the figure, or says in Figure.Empty why it cannot. An error means that a diagnosis does not accept
	// the record's numbers.
	draw func(d data, f *Figure) error
}

// render draws the figure. ok is false for an optional figure without data, drawn or found by drawing.
func (declared figure) render(d data) (f Figure, ok bool) {
	f = Figure{ID: declared.id, Title: declared.title, Note: declared.note}
	for _, name := range declared.asks {
		f.Questions = append(f.Questions, d.questions[name])
	}
	if declared.lacksData(d) {
		f.Empty = declared.empty
		return f, !declared.optional
	}
	if err := declared.draw(d, &f); err != nil {
		f.Empty = "The record's numbers cannot be used: " + err.Error()
	}
	return f, true
}

// lacksData reports whether the first question's answer holds nothing to draw.
func (declared figure) lacksData(d data) bool {
	if declared.empty == "" && !declared.optional {
		return false
	}
	a := d.answers[declared.asks[0]]
	return a.rows() == 0 || (declared.values != "" && !known(a.column(declared.values)))
}

// needs lists the questions whose answers the figure is drawn from.
func (declared figure) needs() []string { return slices.Concat(declared.asks, declared.also) }

// curve draws one column of the first question step by step.
func curve(column string, line chart.Series, c chart.Chart) func(d data, f *Figure) error {
	return func(d data, f *Figure) error {
		a := d.answers[f.Questions[0].Name]
		c, line := c, line
		c.Title, c.XLabel = f.Title, "step"
		line.X, line.Y = a.steps(), a.column(column)
		c.Lines = []chart.Series{line}
		thinned(c, f)
		return nil
	}
}

// table writes a question's answer out, its numbers in units and everything else as text.
func table(question string, units map[string]chart.Unit) func(d data, f *Figure) error {
	return func(d data, f *Figure) error {
		f.Table = d.answers[question].table(units)
		return nil
	}
}

// Reasons why a figure is empty.
const (
	noSteps       = "No step of this run is done yet."
	noSelection   = "No selection is committed: no step has resampled its trajectories yet."
	noEvaluations = "Nothing was evaluated: the run has no policy, or its first evaluation is not committed yet."
	noUpdates     = "No policy was updated: the run is an import, or no step had trajectories to train on."
	noTimings     = "No times of activities are committed yet: they are committed during the next step."
	noCalls       = "No trajectory called a tool."
)
