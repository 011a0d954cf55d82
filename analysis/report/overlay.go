package report

import (
	"math"
	"slices"

	"github.com/ropewalk/ropewalk/analysis/compare"
	"github.com/ropewalk/ropewalk/analysis/report/chart"
)

// overlay declares a figure that shows one line of each run.
type overlay struct {
	id, title string
	note      string
	asks      []string // questions by name
	chart     chart.Chart
	line      func(d data) chart.Series // NaN where a step has no value
}

// overlaySection is a part of a page about several runs.
type overlaySection struct {
	id, title string
	figures   []overlay
	more      func(runs []data) []overlay // figures that depend on what the runs have, such as levels
}

// overlaid lists the questions of all overlays, each once.
func overlaid() []string {
	out := []string{"levels", "evaluations"}
	for _, s := range overlays {
		for _, o := range s.figures {
			out = append(out, o.asks...)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// render draws the section's figures.
func (s overlaySection) render(runs []data) Section {
	out := Section{ID: s.id, Title: s.title}
	all := s.figures
	if s.more != nil {
		all = slices.Concat(all, s.more(runs))
	}
	for _, o := range all {
		if f := o.draw(runs); f.Empty != "" {
			out.empty = append(out.empty, f)
		} else {
			out.Figures = append(out.Figures, f)
		}
	}
	return out
}

// marksApart is the distance, in the picture's units, of error bars of different runs at the same step.
const marksApart = 5

// draw draws the line of each run that has one, in the run's colour.
func (o overlay) draw(runs []data) Figure {
	f := Figure{ID: o.id, Title: o.title, Note: o.note}
	for _, name := range o.asks { // the base's; other runs answer the same question about themselves
		f.Questions = append(f.Questions, runs[0].questions[name])
	}
	c := o.chart
	c.Title, c.XLabel = o.title, "step"
	for i, d := range runs {
		s := o.line(d)
		if !known(s.Y) {
			continue
		}
		s.Name, s.Color = compare.Letter(i)+" "+d.run.Run, runColor(i)
		if s.Bars {
			s.Shift = marksApart * (float64(i) - float64(len(runs)-1)/2)
		}
		c.Lines = append(c.Lines, s)
	}
	if len(c.Lines) == 0 {
		f.Empty = "No run has recorded it."
		return f
	}
	thinned(c, &f)
	f.Legend = nil // the page has one legend
	return f
}

// of is a line from one column of a question.
func of(question, column string) func(d data) chart.Series {
	return func(d data) chart.Series {
		a := d.answers[question]
		return chart.Series{X: a.steps(), Y: a.column(column)}
	}
}

// levelOf is a line from the rows of one level.
func levelOf(level string) func(d data) chart.Series {
	return func(d data) chart.Series {
		steps, _, values := d.answers["levels"].pivot("level", "success", math.NaN())
		return chart.Series{X: steps, Y: values[level]}
	}
}

// levelsOf lists the levels that any run has, of a question's column level.
func levelsOf(runs []data, question string) []string {
	var out []string
	for _, d := range runs {
		a := d.answers[question]
		for i := range a.rows() {
			if level := a.text(i, "level"); !slices.Contains(out, level) {
				out = append(out, level)
			}
		}
	}
	sortNumbers(out)
	return out
}
