package report

import (
	"math"

	"github.com/ropewalk/ropewalk/analysis/report/chart"
	"github.com/ropewalk/ropewalk/rl/diagnose"
)

// updateDiagnostics are of the optimiser steps and the replay buffer.
func (d data) updateDiagnostics() []Figure {
	buffers := d.buffers()
	return []Figure{d.bounds(), d.buffer(buffers), d.bufferWorth(buffers)}
}

// notRecorded is why figures of earlier updates are empty.
const notRecorded = "The updates of this run do not have them: it updated no policy, or was recorded before they were."

func (d data) advantages() Figure {
	f, a, ok := d.asked("advantages", "Advantages", "advantages", notRecorded)
	if !ok {
		return f
	}
	mean, std := a.column("mean"), a.column("std")
	low, high := make([]float64, len(mean)), make([]float64, len(mean))
	for i := range mean {
		low[i], high[i] = mean[i]-std[i], mean[i]+std[i]
	}
	f.Note = "Over the trained tokens, weights included. The band is one standard deviation to each side: where it closes there is nothing left to tell good from bad; a mean that leaves 0 says that long and short trajectories fare unlike, or that resampling has tilted the batch."
	thinned(chart.Chart{Title: f.Title, XLabel: "step", YLabel: "advantage", Lines: []chart.Series{
		{Name: "mean ± standard deviation", Color: 1, X: a.steps(), Y: mean, Low: low, High: high},
		{Name: "least", Color: 4, X: a.steps(), Y: a.column("least"), Dashed: true},
		{Name: "greatest", Color: 3, X: a.steps(), Y: a.column("most"), Dashed: true},
	}}, &f)
	return f
}

func (d data) advantageSigns() Figure {
	f, a, ok := d.asked("advantage-signs", "Signs of the advantages", "advantages", notRecorded)
	if !ok {
		return f
	}
	zero, positive := a.column("zero"), a.column("positive")
	negative := make([]float64, len(zero))
	for i := range zero {
		negative[i] = max(0, 1-zero[i]-positive[i])
	}
	f.Note = "Shares of the trained tokens that the update makes likelier, leaves alone and makes less likely."
	thinned(chart.Chart{Title: f.Title, XLabel: "step", YLabel: "tokens", Unit: chart.Percent, Stack: []chart.Series{
		{Name: "positive", Color: 3, X: a.steps(), Y: positive},
		{Name: "zero", Color: 8, X: a.steps(), Y: zero},
		{Name: "negative", Color: 4, X: a.steps(), Y: negative},
	}}, &f)
	return f
}

func (d data) gradients() Figure {
	f := d.figure("gradients", "Gradient norm", "gradients")
	a := d.answers["gradients"]
	if a.rows() == 0 || !known(a.column("norm")) {
		f.Empty = noUpdates
		return f
	}
	f.Note = "Of each step's optimiser steps, before clipping: mean, and the greatest."
	thinned(chart.Chart{Title: f.Title, XLabel: "step", YLabel: "norm", FromZero: true, Lines: []chart.Series{
		{Name: "mean", Color: 1, X: a.steps(), Y: a.column("norm")},
		{Name: "greatest", Color: 2, X: a.steps(), Y: a.column("most"), Dashed: true},
	}}, &f)
	return f
}

// critic draws how well the critic knows the returns; only runs that have one get the figures.
func (d data) critic() []Figure {
	a := d.answers["critic"]
	if a.rows() == 0 {
		return nil
	}
	fit := d.figure("critic", "The critic", "critic")
	fit.Note = "Explained variance: 1 is a critic that knows every return, 0 one that knows their mean alone, below 0 one that misleads. Clipped values move nothing."
	thinned(chart.Chart{Title: fit.Title, XLabel: "step", YLabel: "share", Unit: chart.Percent, Lines: []chart.Series{
		{Name: "explained variance", Color: 1, X: a.steps(), Y: a.column("explained")},
		{Name: "clipped values", Color: 4, X: a.steps(), Y: a.column("clipped")},
	}}, &fit)
	values := d.figure("values", "Values and returns", "critic")
	values.Note = "Means over the trained tokens before each optimiser step, and the critic's loss. Values that stay above the returns hope for too much."
	thinned(chart.Chart{Title: values.Title, XLabel: "step", YLabel: "return", Lines: []chart.Series{
		{Name: "value", Color: 1, X: a.steps(), Y: a.column("mean_value")},
		{Name: "return", Color: 3, X: a.steps(), Y: a.column("mean_return")},
		{Name: "loss", Color: 4, X: a.steps(), Y: a.column("loss"), Dashed: true},
	}}, &values)
	return []Figure{fit, values}
}

func (d data) bounds() Figure {
	f, a, ok := d.asked("bounds", "Ratios out of bounds, on all sides", "bounds", notRecorded)
	if !ok {
		return f
	}
	f.Note = "Shares of the importance ratios beyond the loss's bounds, by the sign of the advantage. A clip acts where the update has already moved far enough the way it is to go (solid); on the other sides (dashed) the loss still acts and brings the ratio back. The dual clip acts on A < 0 far above. Shares that grow from step to step say that the updates reach too far, or that the trajectories are stale."
	thinned(chart.Chart{Title: f.Title, XLabel: "step", YLabel: "ratios", Unit: chart.Percent, FromZero: true, Lines: []chart.Series{
		{Name: "A > 0, above", Color: 3, X: a.steps(), Y: a.column("high_positive")},
		{Name: "A < 0, below", Color: 4, X: a.steps(), Y: a.column("low_negative")},
		{Name: "A > 0, below", Color: 3, X: a.steps(), Y: a.column("low_positive"), Dashed: true},
		{Name: "A < 0, above", Color: 4, X: a.steps(), Y: a.column("high_negative"), Dashed: true},
		{Name: "dual clip", Color: 6, X: a.steps(), Y: a.column("dual")},
	}}, &f)
	return f
}

// noBuffer is why figures of the replay buffer are empty.
const noBuffer = "The recipe has no replay buffer."

// buffers describes the buffer after each step. The record has no importance ratios of its rows.
func (d data) buffers() (out told[diagnose.ReplayReport]) {
	a := d.answers["buffer"]
	type state = diagnose.ReplayState
	steps, all, err := byStep(a, one[state], func(s *state, i int) error {
		s.Step, s.Baselines = a.count(i, "step"), []float64{a.number(i, "p50")}
		row := diagnose.Replayed{Step: a.count(i, "collected"), Advantage: a.number(i, "gain"), Accepted: a.number(i, "gain") > 0}
		for range a.count(i, "n") {
			s.Rows = append(s.Rows, row)
		}
		return nil
	})
	out = told[diagnose.ReplayReport]{steps: steps, err: err}
	for _, s := range all {
		r, err := diagnose.Replay(*s)
		if err != nil {
			out.err = err
		}
		out.reports = append(out.reports, r)
	}
	return out
}

func (d data) buffer(of told[diagnose.ReplayReport]) Figure {
	f := d.figure("buffer", "The replay buffer", "buffer")
	if !of.tells(&f, noBuffer) {
		return f
	}
	type report = diagnose.ReplayReport
	f.Note = "Trajectories held after each step, and those of them whose reward lies above P50, the median of the groups' latest mean rewards: these alone would be learnt from again. Where few of many do, the policy has outgrown the buffer."
	thinned(chart.Chart{Title: f.Title, XLabel: "step", YLabel: "trajectories", FromZero: true, Lines: []chart.Series{
		{Name: "held", Color: 1, X: of.steps, Y: each(of.reports, func(r report) float64 { return float64(r.Size) })},
		{Name: "above P50", Color: 3, X: of.steps, Y: each(of.reports, func(r report) float64 { return float64(r.Accepted) })},
	}}, &f)
	return f
}

func (d data) bufferWorth(of told[diagnose.ReplayReport]) Figure {
	f := d.figure("buffer-worth", "What the buffer is worth", "buffer")
	if !of.tells(&f, noBuffer) {
		return f
	}
	type report = diagnose.ReplayReport
	f.Table = &Table{Columns: []string{"age in steps, at the end", "trajectories"}}
	for i := len(of.reports) - 1; i >= 0 && len(f.Table.Rows) == 0; i-- { // after a step that emptied it there are none
		for _, b := range of.reports[i].Ages {
			f.Table.Rows = append(f.Table.Rows, []string{whole(b.Value), whole(b.Count)})
		}
	}
	f.Note = "P50, and the mean recalibrated advantage Ã = R − P50 of what lies above it. The table counts the latest step's trajectories by age: the older, the further the policy has moved from what wrote them."
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
	}}, &f)
	return f
}
