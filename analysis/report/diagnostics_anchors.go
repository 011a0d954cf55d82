package report

import (
	"fmt"

	"github.com/ropewalk/ropewalk/analysis/report/chart"
	"github.com/ropewalk/ropewalk/rl/diagnose"
)

var anchorGroups = figure{
	id: "anchors", title: "Turns that start from the same state",
	draw: func(d data, f *Figure) error {
		var all diagnose.Anchors
		for _, s := range d.tokens {
			for _, r := range s.rows {
				for _, anchor := range r.Anchors {
					all.Add(r.GroupID, anchor)
				}
			}
		}
		r := all.Report()
		if r.Turns == 0 {
			f.Empty = noSteps
			return nil
		}
		f.Note = fmt.Sprintf("An anchor group is the set of turns of one task that start from the same state. GiGPO "+
			"and step-level credit compare turns only within such a group. %s groups hold %s turns; %s of the "+
			"groups have a single turn.", plainNumber(float64(r.Groups)), plainNumber(float64(r.Turns)),
			percent(r.Singletons)) + sampled(d)
		f.SVG = chart.Bars(f.Title, counted(r.Sizes, "turn", "turns"))
		return nil
	},
}

// mostSizes bounds the bars of a histogram; the last one counts greater values too.
const mostSizes = 10

// counted makes bars of a histogram.
func counted(bins []diagnose.Bin, one, several string) (out []chart.Bar) {
	for i, b := range bins {
		name := fmt.Sprintf("%d %s", b.Value, several)
		if b.Value == 1 {
			name = "1 " + one
		}
		if i >= mostSizes {
			out[mostSizes-1].Name = fmt.Sprintf("%d %s or more", bins[mostSizes-1].Value, several)
			out[mostSizes-1].Value += float64(b.Count)
			continue
		}
		out = append(out, chart.Bar{Name: name, Color: 1, Value: float64(b.Count)})
	}
	return out
}
