package report

import "github.com/ropewalk/ropewalk/analysis/report/chart"

func (d data) entropy() Figure {
	return d.curve("updates", "entropy", chart.Series{Name: "entropy", Color: 5}, Figure{
		ID: "entropy", Title: "Entropy", Empty: noUpdates,
		Note: "Mean entropy of the policy over the tokens that it was trained on, in nats.",
	}, chart.Chart{YLabel: "nats per token", FromZero: true})
}

func (d data) divergence() Figure {
	f := d.figure("kl", "Divergence from the sampling policy", "updates")
	a := d.answers["updates"]
	kl, reference := a.column("kl"), a.column("reference_kl")
	if a.rows() == 0 || !known(kl) {
		f.Empty = noUpdates
		return f
	}
	f.Note = "Mean of old − new log-probability over the trained tokens: the estimate k1 of KL(old ‖ new), which may be below 0."
	lines := []chart.Series{{Name: "KL", Color: 6, X: a.steps(), Y: kl}}
	if known(reference) {
		f.Note += " From the reference policy: the estimate that the loss takes."
		lines = append(lines, chart.Series{Name: "from the reference", Color: 2, X: a.steps(), Y: reference})
	}
	thinned(chart.Chart{Title: f.Title, XLabel: "step", YLabel: "nats per token", Lines: lines}, &f)
	return f
}

func (d data) clipping() Figure {
	f := d.figure("clipping", "Ratios outside the clip range", "clipping")
	a := d.answers["clipping"]
	if a.rows() == 0 || !known(a.column("clipped")) {
		f.Empty = noUpdates
		return f
	}
	f.Note = "Share of tokens whose importance ratio was clipped: above the range where the advantage is positive, below it where it is negative."
	var lines []chart.Series
	if positive, negative := a.column("positive"), a.column("negative"); known(positive) || known(negative) {
		lines = append(lines,
			chart.Series{Name: "advantage > 0", Color: 3, X: a.steps(), Y: positive},
			chart.Series{Name: "advantage < 0", Color: 4, X: a.steps(), Y: negative})
	} else {
		f.Note += " The run was recorded before the share was split by sign."
	}
	lines = append(lines, chart.Series{Name: "both", Color: 1, X: a.steps(), Y: a.column("clipped"), Dashed: true})
	thinned(chart.Chart{Title: f.Title, XLabel: "step", YLabel: "clipped tokens", Unit: chart.Percent, FromZero: true, Lines: lines}, &f)
	return f
}

func (d data) lengths() Figure {
	f, a, ok := d.asked("lengths", "Response lengths", "lengths", noSteps)
	if !ok {
		return f
	}
	f.Note = "Tokens that the policy wrote in a trajectory, over all its turns; the band reaches from the 10th to the 90th percentile."
	thinned(chart.Chart{Title: f.Title, XLabel: "step", YLabel: "tokens", FromZero: true, Lines: []chart.Series{
		{Name: "median, 10th–90th percentile", Color: 1, X: a.steps(), Y: a.column("p50"), Low: a.column("p10"), High: a.column("p90")},
		{Name: "mean", Color: 2, X: a.steps(), Y: a.column("mean"), Dashed: true},
	}}, &f)
	return f
}
