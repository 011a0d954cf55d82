package report

import (
	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/analysis/report/chart"
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
}

// Section is a part of the page.
type Section struct {
	ID, Title string
	Figures   []Figure
}

func (f *Figure) draw(c chart.Chart) { f.SVG, f.Legend = c.SVG(), c.Legend() }

// data is what figures are drawn from.
type data struct {
	run       analysis.Run
	questions map[string]Question
	answers   map[string]answer
	tokens    []stepTokens // of a few steps, in their order
}

// figure starts a figure on the questions that it names.
func (d data) figure(id, title string, names ...string) Figure {
	f := Figure{ID: id, Title: title}
	for _, name := range names {
		f.Questions = append(f.Questions, d.questions[name])
	}
	return f
}

// asked is a figure over one question, with its answer. ok is false where the answer has no rows: the
// figure then says why, in the words of empty, and is done.
func (d data) asked(id, title, question, empty string) (f Figure, a answer, ok bool) {
	f, a = d.figure(id, title, question), d.answers[question]
	if a.rows() == 0 {
		f.Empty = empty
		return f, a, false
	}
	return f, a, true
}

// curve draws one column of a question step by step; without values the figure says why, as want does.
func (d data) curve(question, column string, line chart.Series, want Figure, c chart.Chart) Figure {
	f := d.figure(want.ID, want.Title, question)
	a := d.answers[question]
	if a.rows() == 0 || !known(a.column(column)) {
		f.Empty = want.Empty
		return f
	}
	f.Note = want.Note
	c.Title, c.XLabel = f.Title, "step"
	line.X, line.Y = a.steps(), a.column(column)
	c.Lines = []chart.Series{line}
	thinned(c, &f)
	return f
}

// sections are the page's figures, in their order.
func (d data) sections() []Section {
	return []Section{
		{"learning", "Learning", []Figure{d.reward(), d.success(), d.trainingLevels(), d.evaluationLevels()}},
		{"selection", "Selection", []Figure{d.funnel(), d.outcomes(), d.variance(), d.toolErrors()}},
		{"update", "Update", append([]Figure{d.entropy(), d.divergence(), d.clipping(), d.lengths(), d.advantages(), d.advantageSigns(), d.gradients()}, d.critic()...)},
		{"time", "Time", append([]Figure{d.stages(), d.orchestration(), d.latency()}, d.devices()...)},
		d.diagnostics(),
	}
}

// Reasons why a figure is empty.
const (
	noSteps       = "No step of this run is done yet."
	noEvaluations = "Nothing was evaluated: the run has no policy of its own, or its first evaluation is not committed yet."
	noUpdates     = "No policy was updated: the run was reprocessed from imported trajectories, or no step had anything to learn from."
	noTimings     = "No times of activities are committed yet: a step's are recorded beside the next step."
)
