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
	question  string // by name
	column    string // of the question, whose values are the line
	axes      chart.Chart
	line      func(d data) chart.Series // instead of a column; NaN where a step has no value
	table     func(runs []data) *Table  // below the lines; nil = none
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
			out = append(out, o.question)
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
	// The question is the base's; other runs answer the same question about themselves.
	f := Figure{ID: o.id, Title: o.title, Note: o.note, Questions: []Question{runs[0].questions[o.question]}}
	c := o.axes
	c.Title, c.XLabel = o.title, "step"
	for i, d := range runs {
		s := o.series(d)
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
	if o.table != nil {
		f.Table = o.table(runs)
	}
	return f
}

// series is the line of a run.
func (o overlay) series(d data) chart.Series {
	if o.line != nil {
		return o.line(d)
	}
	return line{column: o.column}.series(d.answers[o.question])
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
		out = append(out, d.answers[question].kinds("level")...)
	}
	sortNumbers(out)
	return slices.Compact(out)
}
