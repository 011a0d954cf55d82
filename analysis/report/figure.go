package report

import (
	"math"
	"slices"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/analysis/report/chart"
	"github.com/ropewalk/ropewalk/rl/diagnose"
)

// Figure is one figure of the page and the questions that it is drawn from.
type Figure struct {
	ID        string      `json:"id"`
	Title     string      `json:"title"`
	Note      string      `json:"note"`            // how to read it
	Empty     string      `json:"empty,omitempty"` // why there is nothing to draw
	SVG       string      `json:"svg,omitempty"`   // the chart package has escaped its texts
	Legend    []chart.Key `json:"legend,omitempty"`
	Table     *Table      `json:"table,omitempty"`
	Questions []Question  `json:"questions"`
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
	replays   bool             // the page compares replays with what the heads name
	origin    *analysis.Origin // nil for a run that has committed nothing yet
	questions map[string]Question
	answers   map[string]answer
	tokens    []stepTokens // of a few steps, in their order
	// offered is what the world offers before training; nil for a run without a finished step.
	offered *diagnose.PropertyReport
	// cold compares the policies before and after the warm start; nil if the run measures only the latter.
	cold *analysis.ColdStart
	// rates compare failures of calls and actions at the start and at the end.
	rates []analysis.ErrorRate
}

// figure declares one figure: the questions it asks, why it can be empty, how to read it, and how to draw it. Most are
// charts over the steps whose lines are columns of the first question. Lines without any number are left out.
type figure struct {
	id, title string
	asks      []string // questions by name; the page shows their SQL
	also      []string // questions that only the note needs
	empty     string   // the reason given where the first question has nothing to draw; "" leaves that case to draw
	note      string   // draw may add to it
	optional  bool     // left out of the page, instead of shown as empty, where the first question has no rows

	axes  chart.Chart // what the values are
	lines []line
	stack []line // columns on top of each other, beneath the lines
	split *split // a line or a part of the stack for each kind of row, in addition

	// draw fills in what the page shows besides the declared lines, or says in Figure.Empty why it cannot. An error
	// means that a diagnosis does not accept the record's numbers.
	draw func(d data, f *Figure) error
}

// line declares a series: a column of the figure's first question over the steps.
type line struct {
	name      string
	color     int
	column    string
	dashed    bool
	low, high string // columns of a band
}

func solid(name string, color int, column string) line {
	return line{name: name, color: color, column: column}
}

func dashed(name string, color int, column string) line {
	return line{name: name, color: color, column: column, dashed: true}
}

// split declares one series for each value of a column.
type split struct {
	key, value string
	prefix     string                // of a series' name, before the key's value
	color      func(name string) int // nil: by the order of the names
	stacked    bool                  // columns on top of each other, where a missing value is 0
}

// render draws the figure. ok is false for an optional figure without data, drawn or found by drawing.
func (declared figure) render(d data) (f Figure, ok bool) {
	f = Figure{ID: declared.id, Title: declared.title, Note: declared.note}
	for _, name := range declared.asks {
		f.Questions = append(f.Questions, d.questions[name])
	}
	c, values := declared.chart(d)
	if declared.lacksData(d, values) {
		f.Empty = declared.empty
		return f, !declared.optional
	}
	if declared.draw != nil {
		if err := declared.draw(d, &f); err != nil {
			f.Empty = "The record's numbers cannot be used: " + err.Error()
		}
	}
	if values && f.Empty == "" {
		thinned(c, &f)
	}
	return f, true
}

// chart makes the declared chart; values says whether it has any number.
func (declared figure) chart(d data) (c chart.Chart, values bool) {
	if len(declared.lines)+len(declared.stack) == 0 && declared.split == nil {
		return c, false
	}
	a := d.answers[declared.asks[0]]
	c = declared.axes
	c.Title, c.XLabel = declared.title, "step"
	for _, l := range declared.stack {
		c.Stack = append(c.Stack, l.series(a))
	}
	for _, l := range declared.lines {
		if s := l.series(a); known(s.Y) {
			c.Lines = append(c.Lines, s)
		}
	}
	if declared.split != nil {
		declared.split.add(a, &c)
	}
	return c, slices.ContainsFunc(slices.Concat(c.Lines, c.Stack), func(s chart.Series) bool { return known(s.Y) })
}

func (l line) series(a answer) chart.Series {
	s := chart.Series{Name: l.name, Color: l.color, X: a.steps(), Y: a.column(l.column), Dashed: l.dashed}
	if l.low != "" {
		s.Low, s.High = a.column(l.low), a.column(l.high)
	}
	return s
}

// add adds the series of an answer to a chart, in the order of their colours and names.
func (s split) add(a answer, c *chart.Chart) {
	absent, into := math.NaN(), &c.Lines
	if s.stacked {
		absent, into = 0, &c.Stack
	}
	steps, names, values := a.pivot(s.key, s.value, absent)
	if s.color != nil {
		slices.SortStableFunc(names, func(x, y string) int { return s.color(x) - s.color(y) })
	}
	for i, name := range names {
		color := 1 + i%colors
		if s.color != nil {
			color = s.color(name)
		}
		*into = append(*into, chart.Series{Name: s.prefix + name, Color: color, X: steps, Y: values[name]})
	}
}

// lacksData reports whether the first question's answer holds nothing to draw.
func (declared figure) lacksData(d data, values bool) bool {
	if declared.empty == "" && !declared.optional {
		return false
	}
	declaresChart := len(declared.lines)+len(declared.stack) > 0 || declared.split != nil
	return d.answers[declared.asks[0]].rows() == 0 || declaresChart && !values
}

// needs lists the questions whose answers the figure is drawn from.
func (declared figure) needs() []string { return slices.Concat(declared.asks, declared.also) }

// shares and amounts are the axes of shares, and of amounts from 0.
func shares(of string) chart.Chart { return chart.Chart{YLabel: of, Unit: chart.Percent} }

func sharesFromZero(of string) chart.Chart {
	return chart.Chart{YLabel: of, Unit: chart.Percent, FromZero: true}
}

func amounts(of string) chart.Chart { return chart.Chart{YLabel: of, FromZero: true} }

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
