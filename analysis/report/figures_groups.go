package report

import (
	"fmt"

	"github.com/ropewalk/ropewalk/analysis/report/chart"
	"github.com/ropewalk/ropewalk/rl/diagnose"
)

var zeroAdvantage = figure{
	id: "zero-advantage", title: "Groups without an advantage", asks: []string{"group_rewards"}, empty: noSteps,
	draw: func(d data, f *Figure) error {
		steps, groups := groupsOf(d.answers["group_rewards"])
		var told []diagnose.ZeroAdvantageReport
		for _, of := range groups {
			var z diagnose.ZeroAdvantage
			for _, g := range of {
				if err := z.Add(g.Rewards); err != nil {
					return err
				}
			}
			told = append(told, z.Report())
		}
		f.Note = fmt.Sprintf("Share of a step's groups whose rewards have a variance below %g: all their advantages "+
			"are 0, so nothing is learned from them. Many groups that are always solved mean that the tasks have "+
			"become too easy; many that are never solved mean that they are too hard. %s", diagnose.DefaultMinVariance,
			groupsOfSteps(told))
		thinned(chart.Chart{Title: f.Title, XLabel: "step", YLabel: "groups", Unit: chart.Percent,
			Stack: []chart.Series{
				{Name: "never solved", Color: 4, X: steps,
					Y: each(told, func(r diagnose.ZeroAdvantageReport) float64 { return r.SolveNone })},
				{Name: "always solved", Color: 3, X: steps,
					Y: each(told, func(r diagnose.ZeroAdvantageReport) float64 { return r.SolveAll })},
			}}, f)
		return nil
	},
}

// groupsOfSteps says of how many groups the shares are.
func groupsOfSteps(told []diagnose.ZeroAdvantageReport) string {
	least, most := told[0].Groups, told[0].Groups
	for _, r := range told {
		least, most = min(least, r.Groups), max(most, r.Groups)
	}
	if least == most {
		return fmt.Sprintf("A step has %d groups.", least)
	}
	return fmt.Sprintf("Steps have %d to %d groups.", least, most)
}
