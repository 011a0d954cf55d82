package report

import (
	"math"

	"github.com/ropewalk/ropewalk/analysis/report/chart"
	"github.com/ropewalk/ropewalk/rl/diagnose"
)

// notRecorded is why figures of earlier updates are empty.
const notRecorded = "The updates of this run have no such data: no policy was updated, or the run is older than " +
	"this figure."

var advantages = figure{
	id: "advantages", title: "Advantages", asks: []string{"advantages"}, empty: notRecorded,
	note: "Over the trained tokens, weights included. The band is one standard deviation to each side: where it " +
		"closes, the update no longer tells good from bad. A mean away from 0 shows that success depends on length, " +
		"or that resampling has shifted the batch.",
	draw: func(d data, f *Figure) error {
		a := d.answers["advantages"]
		mean, std := a.column("mean"), a.column("std")
		low, high := make([]float64, len(mean)), make([]float64, len(mean))
		for i := range mean {
			low[i], high[i] = mean[i]-std[i], mean[i]+std[i]
		}
		thinned(chart.Chart{Title: f.Title, XLabel: "step", YLabel: "advantage", Lines: []chart.Series{
			{Name: "mean ± standard deviation", Color: 1, X: a.steps(), Y: mean, Low: low, High: high},
			{Name: "minimum", Color: 4, X: a.steps(), Y: a.column("least"), Dashed: true},
			{Name: "maximum", Color: 3, X: a.steps(), Y: a.column("most"), Dashed: true},
		}}, f)
		return nil
	},
}

var advantageSigns = figure{
	id: "advantage-signs", title: "Signs of the advantages", asks: []string{"advantages"}, empty: notRecorded,
	note: "Shares of the trained tokens whose probability the update raises (positive), leaves unchanged (zero) and " +
		"lowers (negative).",
	draw: func(d data, f *Figure) error {
		a := d.answers["advantages"]
		zero, positive := a.column("zero"), a.column("positive")
		negative := make([]float64, len(zero))
		for i := range zero {
			negative[i] = max(0, 1-zero[i]-positive[i])
		}
		thinned(chart.Chart{Title: f.Title, XLabel: "step", YLabel: "tokens", Unit: chart.Percent,
			Stack: []chart.Series{
				{Name: "positive", Color: 3, X: a.steps(), Y: positive},
				{Name: "zero", Color: 8, X: a.steps(), Y: zero},
				{Name: "negative", Color: 4, X: a.steps(), Y: negative},
			}}, f)
		return nil
	},
}

var gradients = figure{
	id: "gradients", title: "Gradient norm", asks: []string{"gradients"}, values: "norm", empty: noUpdates,
	note: "Mean and maximum over each step's optimiser steps, before clipping.",
	draw: func(d data, f *Figure) error {
		a := d.answers["gradients"]
		thinned(chart.Chart{Title: f.Title, XLabel: "step", YLabel: "norm", FromZero: true, Lines: []chart.Series{
			{Name: "mean", Color: 1, X: a.steps(), Y: a.column("norm")},
			{Name: "maximum", Color: 2, X: a.steps(), Y: a.column("most"), Dashed: true},
		}}, f)
		return nil
	},
}

// criticFit draws how well the critic knows the returns; only runs that have a critic get the figure.
var criticFit = figure{
	id: "critic", title: "The critic", asks: []string{"critic"}, optional: true,
	note: "Explained variance is 1 if the critic predicts every return, 0 if it predicts only their mean, and " +
		"negative if it is worse than that. Clipped values have no gradient.",
	draw: func(d data, f *Figure) error {
		a := d.answers["critic"]
		thinned(chart.Chart{Title: f.Title, XLabel: "step", YLabel: "share", Unit: chart.Percent, Lines: []chart.Series{
			{Name: "explained variance", Color: 1, X: a.steps(), Y: a.column("explained")},
			{Name: "clipped values", Color: 4, X: a.steps(), Y: a.column("clipped")},
		}}, f)
		return nil
	},
}

var criticValues = figure{
	id: "values", title: "Values and returns", asks: []string{"critic"}, optional: true,
	note: "Means over the trained tokens before each optimiser step, and the critic's loss. Values that stay above " +
		"the returns are too optimistic.",
	draw: func(d data, f *Figure) error {
		a := d.answers["critic"]
		thinned(chart.Chart{Title: f.Title, XLabel: "step", YLabel: "return", Lines: []chart.Series{
			{Name: "value", Color: 1, X: a.steps(), Y: a.column("mean_value")},
			{Name: "return", Color: 3, X: a.steps(), Y: a.column("mean_return")},
			{Name: "loss", Color: 4, X: a.steps(), Y: a.column("loss"), Dashed: true},
		}}, f)
		return nil
	},
}

// noBuffer is why figures of the replay buffer are empty.
const noBuffer = "The recipe has no replay buffer."

// buffers describes the buffer after each step. The record has no importance ratios of its rows.
func buffers(d data) (stepReports[diagnose.ReplayReport], error) {
	a := d.answers["buffer"]
	type state = diagnose.ReplayState
	steps, all, err := byStep(a, one[state], func(s *state, i int) error {
		s.Step, s.Baselines = a.count(i, "step"), []float64{a.number(i, "p50")}
		row := diagnose.Replayed{Step: a.count(i, "collected"), Advantage: a.number(i, "gain"),
			Accepted: a.number(i, "gain") > 0}
		for range a.count(i, "n") {
			s.Rows = append(s.Rows, row)
		}
		return nil
	})
	out := stepReports[diagnose.ReplayReport]{steps: steps}
	for _, s := range all {
		r, failed := diagnose.Replay(*s)
		if failed != nil {
			err = failed
		}
		out.reports = append(out.reports, r)
	}
	return out, err
}

var replayBuffer = figure{
	id: "buffer", title: "The replay buffer", asks: []string{"buffer"}, empty: noBuffer,
	note: "Trajectories in the buffer after each step, and those whose reward is above P50, the median of the " +
		"groups' latest mean rewards: only these would be trained on again. If only a few are, the policy has " +
		"outgrown the buffer.",
	draw: func(d data, f *Figure) error {
		of, err := buffers(d)
		if err != nil {
			return err
		}
		type report = diagnose.ReplayReport
		thinned(chart.Chart{Title: f.Title, XLabel: "step", YLabel: "trajectories", FromZero: true,
			Lines: []chart.Series{
				{Name: "in the buffer", Color: 1, X: of.steps,
					Y: each(of.reports, func(r report) float64 { return float64(r.Size) })},
				{Name: "above P50", Color: 3, X: of.steps,
					Y: each(of.reports, func(r report) float64 { return float64(r.Accepted) })},
			}}, f)
		return nil
	},
}

var replayBufferWorth = figure{
	id: "buffer-worth", title: "What the buffer is worth", asks: []string{"buffer"}, empty: noBuffer,
	note: "P50, and the mean recalibrated advantage Ã = R − P50 of the trajectories above it. The table counts the " +
		"trajectories in the buffer after the last step by age: the older a trajectory, the further the policy has " +
		"moved since.",
	draw: func(d data, f *Figure) error {
		of, err := buffers(d)
		if err != nil {
			return err
		}
		type report = diagnose.ReplayReport
		f.Table = &Table{Columns: []string{"age in steps, at the end", "trajectories"}}
		for i := len(of.reports) - 1; i >= 0 && len(f.Table.Rows) == 0; i-- { // the buffer may be empty after a step
			for _, b := range of.reports[i].Ages {
				f.Table.Rows = append(f.Table.Rows, []string{whole(b.Value), whole(b.Count)})
			}
		}
		if len(f.Table.Rows) == 0 {
			f.Table = nil
		}
		thinned(chart.Chart{Title: f.Title, XLabel: "step", YLabel: "reward", Lines: []chart.Series{
			{Name: "P50", Color: 1, X: of.steps, Y: each(of.reports, func(r report) float64 { return r.P50 })},
			{Name: "mean Ã", Color: 3, X: of.steps, Y: each(of.reports, func(r report) float64 {
				if r.Accepted == 0 {
					return math.NaN()
				}
				return r.Advantage
			})},
		}}, f)
		return nil
	},
}
