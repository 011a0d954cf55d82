package trials

import (
	"fmt"
	"math"
	"slices"

	"github.com/ropewalk/ropewalk/analysis/report"
	"github.com/ropewalk/ropewalk/analysis/report/chart"
	"github.com/ropewalk/ropewalk/experiment"
)

// refresh is how many seconds a browser shows a page before it loads it again, while trials are not done.
const refresh = 10

// colors is how many colours arms can have; more arms share them.
const colors = 12

// NewPage makes the page of an experiment from what is known of its trials.
func NewPage(f *experiment.File, trials []experiment.Observed) (*report.Sheet, error) {
	r := f.Report(trials)
	page := &report.Sheet{Kicker: "ropewalk experiment", Title: f.Name, Sub: f.Question,
		Footer: "Made by ropewalk from the trials' records. A difference is resolved if its p value, corrected for " +
			"the number of differences on this page (Holm), is below 0.05."}
	page.Tiles = tiles(f, trials, page)
	colour := map[string]int{}
	for _, s := range r.Arms {
		if _, there := colour[s.Arm]; !there {
			colour[s.Arm] = 1 + len(colour)%colors
		}
	}
	page.Sections = []report.Section{forests(f, r, colour), curves(f, trials, colour)}
	settings, err := f.Settings(trials)
	if err != nil {
		return nil, err
	}
	tables := report.Section{ID: "tables", Title: "Tables", Wide: true}
	for _, t := range append(r.Tables(), settings) {
		tables.Figures = append(tables.Figures, report.Figure{ID: t.Title, Title: t.Title,
			Table: &report.Table{Text: true, Columns: t.Columns, Rows: t.Rows}})
	}
	page.Sections = append(page.Sections, tables)
	return page, nil
}

// tiles sum the experiment up. The page is loaded again as long as trials are not done.
func tiles(f *experiment.File, trials []experiment.Observed, page *report.Sheet) []report.Tile {
	done, seconds, bytes := 0, 0.0, int64(0)
	programs := map[string]bool{}
	for _, t := range trials {
		if t.Result == nil {
			continue
		}
		if t.Result.Done {
			done++
		}
		seconds, bytes = seconds+t.Result.Cost.Seconds(), bytes+t.Result.Cost.Bytes
		for _, p := range t.Result.Programs {
			programs[p] = true
		}
	}
	if done < len(trials) {
		page.Refresh = refresh
	}
	builds := "every trial was made by one build"
	if len(programs) > 1 {
		builds = "a difference may be one between builds"
	}
	end := "up to what both trials of a pair have spent"
	switch {
	case f.Budget.Amount > 0:
		end = fmt.Sprintf("up to %g", f.Budget.Amount)
	case f.Budget.Axis == experiment.AxisSteps:
		end = "to the end of each trial"
	}
	return []report.Tile{
		{Name: "trials done", Value: fmt.Sprintf("%d of %d", done, len(trials)),
			Note: fmt.Sprintf("%d arms, %d seeds", len(f.Arms)*len(f.Points), len(f.Seeds))},
		{Name: "compared over", Value: f.Budget.Axis, Note: end},
		{Name: "time of all trials", Value: fmt.Sprintf("%.0f s", seconds),
			Note: fmt.Sprintf("%.1f MB stored", float64(bytes)/1e6)},
		{Name: "programs", Value: fmt.Sprint(len(programs)), Note: builds},
	}
}

// forests has a forest plot of each outcome that is compared.
func forests(f *experiment.File, r experiment.Report, colour map[string]int) report.Section {
	s := report.Section{ID: "differences", Title: "Differences, paired by seed"}
	for _, o := range f.Outcomes {
		plot := chart.Forest{Title: o.Name}
		for _, c := range r.Contrasts {
			if c.Outcome != o.Name || c.N == 0 {
				continue
			}
			row := chart.ForestRow{Name: c.Name(), Color: colour[c.Arm], Mean: c.Mean, Low: math.NaN(),
				High: math.NaN(), Note: o.Difference(c.Mean)}
			if c.T != nil {
				row.Low, row.High, row.Note = c.T.Low, c.T.High, row.Note+" "+c.T.Bounds(o.Difference)
			}
			plot.Rows = append(plot.Rows, row)
		}
		if len(plot.Rows) > 0 {
			s.Figures = append(s.Figures, report.Figure{ID: "difference-" + o.Name, Title: o.Name, SVG: plot.SVG(),
				Note: o.Doc + ". Bars are 95% t intervals over the seeds."})
		}
	}
	return s
}

// curves draws each curve of the outcomes once: the mean of each arm, with the interval over its seeds.
func curves(f *experiment.File, trials []experiment.Observed, colour map[string]int) report.Section {
	s := report.Section{ID: "curves", Title: "Curves"}
	var seen []string
	for _, o := range f.Outcomes {
		if slices.Contains(seen, o.ID()) {
			continue
		}
		seen = append(seen, o.ID())
		c := chart.Chart{Title: o.Name, XLabel: f.Budget.Axis, YLabel: o.Name}
		if o.Share {
			c.Unit = chart.Percent
		}
		for _, m := range f.Means(trials, o) {
			if len(m.X) > 0 {
				c.Lines = append(c.Lines, chart.Series{Name: fmt.Sprintf("%s (%d of %d)", m.Arm, m.Done, m.Trials),
					Color: colour[m.Arm], X: m.X, Y: m.Y, Low: m.Low, High: m.High})
			}
		}
		if len(c.Lines) > 0 {
			s.Figures = append(s.Figures, report.Drawn("curve-"+o.Name, o.Name, "Mean over the seeds, with the 95% t "+
				"interval.", c))
		}
	}
	return s
}
