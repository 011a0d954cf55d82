package report

import (
	"fmt"

	"github.com/ropewalk/ropewalk/analysis/report/chart"
	"github.com/ropewalk/ropewalk/rl/diagnose"
)

func (d data) anchorGroups() Figure {
	f := Figure{ID: "anchors", Title: "Turns that begin alike"}
	var all diagnose.Anchors
	for _, s := range d.tokens {
		for _, r := range s.rows {
			for _, anchor := range r.Anchors { // their advantages are recorded as sums alone
				if err := all.Add(diagnose.TurnRow{Group: r.GroupID, Anchor: anchor}); err != nil {
					return f.refused(err)
				}
			}
		}
	}
	r := all.Report()
	if r.Rows == 0 {
		f.Empty = noSteps
		return f
	}
	f.Note = fmt.Sprintf("Anchor groups: the turns of one task that start from the same state. GiGPO and step-level credit can compare turns only inside them. %s groups hold %s turns; %s of the groups have one turn alone.", plainNumber(float64(r.Groups)), plainNumber(float64(r.Rows)), percent(r.Singletons)) + d.sampled()
	f.SVG = chart.Bars(f.Title, sizes(r.Sizes))
	return f
}

// mostSizes bounds the bars of a histogram; what is greater is one bar.
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
