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
				for _, anchor := range r.Anchors { // only the sums of their advantages are recorded
					if err := all.Add(diagnose.TurnRow{Group: r.GroupID, Anchor: anchor}); err != nil {
						return err
					}
				}
			}
		}
		r := all.Report()
		if r.Rows == 0 {
			f.Empty = noSteps
			return nil
		}
		f.Note = fmt.Sprintf("An anchor group is the set of turns of one task that start from the same state. GiGPO "+
			"and step-level credit compare turns only within such a group. %s groups hold %s turns; %s of the "+
			"groups have a single turn.", plainNumber(float64(r.Groups)), plainNumber(float64(r.Rows)),
			percent(r.Singletons)) + sampled(d)
		f.SVG = chart.Bars(f.Title, sizes(r.Sizes))
		return nil
	},
}

// mostSizes bounds the bars of a histogram; greater values share one more bar.
const mostSizes = 10

func sizes(bins []diagnose.Bin) (out []chart.Bar) {
	for i, b := range bins {
		if i < mostSizes || len(bins) == mostSizes+1 {
			name := "turns"
			if b.Value == 1 {
				name = "turn"
			}
			out = append(out, chart.Bar{Name: fmt.Sprintf("%d %s", b.Value, name), Color: 1, Value: float64(b.Count)})
			continue
		}
		if i == mostSizes {
			out = append(out, chart.Bar{Name: fmt.Sprintf("%d turns or more", b.Value), Color: 1})
		}
		out[mostSizes].Value += float64(b.Count)
	}
	return out
}
