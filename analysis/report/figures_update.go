package report

import "github.com/ropewalk/ropewalk/analysis/report/chart"

var entropy = figure{
	id: "entropy", title: "Entropy", asks: []string{"updates"}, values: "entropy", empty: noUpdates,
	note: "Mean entropy of the policy over the trained tokens, in nats.",
	draw: curve("entropy", chart.Series{Name: "entropy", Color: 5},
		chart.Chart{YLabel: "nats per token", FromZero: true}),
}

var divergence = figure{
	id: "kl", title: "Divergence from the sampling policy", asks: []string{"updates"}, values: "kl", empty: noUpdates,
	note: "Mean of old − new log-probability over the trained tokens: the estimate k1 of KL(old ‖ new), which can " +
		"be negative.",
	draw: func(d data, f *Figure) error {
		a := d.answers["updates"]
		kl, reference := a.column("kl"), a.column("reference_kl")
		lines := []chart.Series{{Name: "KL", Color: 6, X: a.steps(), Y: kl}}
		if known(reference) {
			f.Note += " The divergence from the reference policy is the estimate that the loss uses."
			lines = append(lines, chart.Series{Name: "from the reference", Color: 2, X: a.steps(), Y: reference})
		}
		thinned(chart.Chart{Title: f.Title, XLabel: "step", YLabel: "nats per token", Lines: lines}, f)
		return nil
	},
}

var clipping = figure{
	id: "clipping", title: "Ratios outside the clip range", asks: []string{"clipping", "bounds"}, values: "clipped",
	empty: noUpdates,
	note: "Shares of the importance ratios outside the loss's range, by the sign of the advantage (A). On the solid " +
		"sides the update has already moved far enough in its direction and is clipped.",
	draw: func(d data, f *Figure) error {
		a, sides := d.answers["clipping"], d.answers["bounds"]
		var lines []chart.Series
		if positive, negative := a.column("positive"), a.column("negative"); known(positive) || known(negative) {
			lines = append(lines,
				chart.Series{Name: "A > 0, above", Color: 3, X: a.steps(), Y: positive},
				chart.Series{Name: "A < 0, below", Color: 4, X: a.steps(), Y: negative})
		} else {
			f.Note += " The run was recorded before the share was split by sign."
		}
		if sides.rows() > 0 {
			f.Note += " On the dashed sides the loss still acts and pulls the ratio back. The dual clip applies far " +
				"above the range for A < 0. Growing shares mean that updates are too large or trajectories too old."
			x := sides.steps()
			lines = append(lines,
				chart.Series{Name: "A > 0, below", Color: 3, X: x, Y: sides.column("low_positive"), Dashed: true},
				chart.Series{Name: "A < 0, above", Color: 4, X: x, Y: sides.column("high_negative"), Dashed: true},
				chart.Series{Name: "dual clip", Color: 6, X: x, Y: sides.column("dual")})
		}
		lines = append(lines,
			chart.Series{Name: "clipped", Color: 1, X: a.steps(), Y: a.column("clipped"), Dashed: true})
		thinned(chart.Chart{Title: f.Title, XLabel: "step", YLabel: "ratios", Unit: chart.Percent, FromZero: true,
			Lines: lines}, f)
		return nil
	},
}

var lengths = figure{
	id: "lengths", title: "Response lengths", asks: []string{"lengths"}, empty: noSteps,
	note: "Tokens that the policy wrote in a trajectory, over all turns. The band spans the 10th to the 90th " +
		"percentile.",
	draw: func(d data, f *Figure) error {
		a := d.answers["lengths"]
		thinned(chart.Chart{Title: f.Title, XLabel: "step", YLabel: "tokens", FromZero: true, Lines: []chart.Series{
			{Name: "median, 10th–90th percentile", Color: 1, X: a.steps(), Y: a.column("p50"), Low: a.column("p10"),
				High: a.column("p90")},
			{Name: "mean", Color: 2, X: a.steps(), Y: a.column("mean"), Dashed: true},
		}}, f)
		return nil
	},
}
