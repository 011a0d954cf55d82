package report

import "github.com/ropewalk/ropewalk/analysis/report/chart"

// notRecorded is why figures of updates are empty.
const notRecorded = "The updates of this run have no such data: no policy was updated."

var entropy = figure{
	id: "entropy", title: "Entropy", asks: []string{"updates"}, empty: noUpdates,
	note: "Mean entropy of the policy over the trained tokens, in nats.",
	axes: amounts("nats per token"), lines: []line{solid("entropy", 5, "entropy")},
}

var divergence = figure{
	id: "kl", title: "Divergence from the sampling policy", asks: []string{"updates"}, empty: noUpdates,
	note: "Mean of old − new log-probability over the trained tokens: the estimate k1 of KL(old ‖ new), which can " +
		"be negative. A divergence from the reference policy is the estimate that the loss uses.",
	axes:  chart.Chart{YLabel: "nats per token"},
	lines: []line{solid("KL", 6, "kl"), solid("from the reference", 2, "reference_kl")},
}

var clipping = figure{
	id: "clipping", title: "Ratios outside the clip range", asks: []string{"clipping"}, empty: noUpdates,
	note: "Shares of the importance ratios outside the loss's range, by the sign of the advantage (A). On the solid " +
		"sides the update has already moved far enough in its direction and is clipped. On the dashed sides the loss " +
		"still acts and pulls the ratio back. The dual clip applies far above the range for A < 0. Growing shares " +
		"mean that updates are too large or trajectories too old.",
	axes: sharesFromZero("ratios"),
	lines: []line{
		solid("A > 0, above", 3, "positive"), solid("A < 0, below", 4, "negative"),
		dashed("A > 0, below", 3, "low_positive"), dashed("A < 0, above", 4, "high_negative"),
		solid("dual clip", 6, "dual"), dashed("clipped", 1, "clipped"),
	},
}

var lengths = figure{
	id: "lengths", title: "Response lengths", asks: []string{"lengths"}, empty: noSteps,
	note: "Tokens that the policy wrote in a trajectory, over all turns. The band spans the 10th to the 90th " +
		"percentile.",
	axes: amounts("tokens"),
	lines: []line{
		{name: "median, 10th–90th percentile", color: 1, column: "p50", low: "p10", high: "p90"},
		dashed("mean", 2, "mean"),
	},
}

var advantages = figure{
	id: "advantages", title: "Advantages", asks: []string{"advantages"}, empty: notRecorded,
	note: "Over the trained tokens, weights included. The band is one standard deviation to each side: where it " +
		"closes, the update no longer tells good from bad. A mean away from 0 shows that success depends on length, " +
		"or that resampling has shifted the batch.",
	axes: chart.Chart{YLabel: "advantage"},
	lines: []line{
		{name: "mean ± standard deviation", color: 1, column: "mean", low: "low", high: "high"},
		dashed("minimum", 4, "least"), dashed("maximum", 3, "most"),
	},
}

var advantageSigns = figure{
	id: "advantage-signs", title: "Signs of the advantages", asks: []string{"advantages"}, empty: notRecorded,
	note: "Shares of the trained tokens whose probability the update raises (positive), leaves unchanged (zero) and " +
		"lowers (negative).",
	axes:  shares("tokens"),
	stack: []line{solid("positive", 3, "positive"), solid("zero", 8, "zero"), solid("negative", 4, "negative")},
}

var gradients = figure{
	id: "gradients", title: "Gradient norm", asks: []string{"gradients"}, empty: noUpdates,
	note: "Mean and maximum over each step's optimiser steps, before clipping.",
	axes: amounts("norm"), lines: []line{solid("mean", 1, "norm"), dashed("maximum", 2, "most")},
}

// criticFit draws how well the critic knows the returns; only runs that have a critic get the figure.
var criticFit = figure{
	id: "critic", title: "The critic", asks: []string{"critic"}, optional: true,
	note: "Explained variance is 1 if the critic predicts every return, 0 if it predicts only their mean, and " +
		"negative if it is worse than that. Clipped values have no gradient.",
	axes:  shares("share"),
	lines: []line{solid("explained variance", 1, "explained"), solid("clipped values", 4, "clipped")},
}

var criticValues = figure{
	id: "values", title: "Values and returns", asks: []string{"critic"}, optional: true,
	note: "Means over the trained tokens before each optimiser step, and the critic's loss. Values that stay above " +
		"the returns are too optimistic.",
	axes:  chart.Chart{YLabel: "return"},
	lines: []line{solid("value", 1, "mean_value"), solid("return", 3, "mean_return"), dashed("loss", 4, "loss")},
}
