package report

import "github.com/ropewalk/ropewalk/analysis/report/chart"

// overlays are the parts of a page about several runs.
var overlays = []overlaySection{
	{id: "learning", title: "Learning", more: levelOverlays, figures: []overlay{
		{id: "reward", title: reward.title, note: reward.note, question: "rewards", column: "reward",
			axes: reward.axes},
		{id: "success", title: "Success per step, in training", question: "rewards", column: "success",
			axes: shares("success"), table: stabilities, note: "Share of the sampled trajectories that solved their " +
				"problem. The table says which runs are stable over the last fifth of their steps (ARLArena)."},
		{id: "held-out", title: "Success on held-out problems", question: "evaluations", line: evaluated,
			axes: shares("success"),
			note: "Sampled, with the 95% interval of each run. The table of differences has the intervals of the " +
				"differences, which are usually narrower, because they compare the same problems."},
		{id: "greedy", title: "Success on held-out problems, decoded greedily", question: "greedy",
			axes: shares("success"), line: func(d data) chart.Series {
				s := line{column: "success"}.series(d.answers["greedy"])
				s.Reach = reach(s.X)
				return s
			}},
	}},
	{id: "update", title: "Update", figures: []overlay{
		{id: "entropy", title: entropy.title, note: entropy.note, question: "updates", column: "entropy",
			axes: entropy.axes},
		{id: "kl", title: divergence.title, note: "Mean of old − new log-probability over the trained tokens.",
			question: "updates", column: "kl", axes: divergence.axes},
		{id: "reference-kl", title: "Divergence from the reference policy", question: "updates", column: "reference_kl",
			axes: divergence.axes, note: "As the loss estimates it."},
		{id: "lengths", title: lengths.title, question: "lengths", column: "mean", axes: lengths.axes,
			note: "Mean of the tokens that the policy wrote in a trajectory."},
		{id: "clipping", title: "Clipped ratios", question: "clipping", column: "clipped", axes: shares("share"),
			note: "Share of tokens whose importance ratio was clipped."},
		{id: "gradients", title: gradients.title, question: "gradients", column: "norm", axes: gradients.axes,
			note: "Mean over each step's optimiser steps, before clipping."},
		{id: "advantages", title: "Standard deviation of the advantages", question: "advantages", column: "std",
			axes: amounts("advantage"), note: "Over the trained tokens."},
		{id: "critic", title: "Explained variance of the critic", question: "critic", column: "explained",
			axes: shares("share")},
	}},
	{id: "selection", title: "Rollout and selection", figures: []overlay{
		{id: "kept", title: "Kept trajectories", question: "kept", column: "share", axes: shares("share"),
			note: "Share of the sampled trajectories that resampling kept."},
		{id: "zero-advantage", title: zeroAdvantage.title, question: "group_rewards", column: "equal",
			axes: shares("share"), note: "Share of groups whose rewards are all equal."},
		{id: "tool-errors", title: toolErrors.title, question: "tool_errors", column: "positive",
			axes: shares("share"), note: "Share of their calls that failed."},
		{id: "tool-calls", title: "Tool calls", question: "effort", column: "calls", axes: effort.axes},
		{id: "turns", title: "Turns", question: "effort", column: "turns", axes: effort.axes},
		{id: "truncated", title: truncation.title, question: "effort", column: "truncated", axes: shares("share")},
		{id: "seconds", title: "Time of a step", question: "orchestration", column: "seconds",
			axes: chart.Chart{YLabel: "seconds", Unit: chart.Seconds, FromZero: true},
			note: "Without evaluations and standstills. Compare it on equal machines only."},
	}},
}

// levelOverlays are figures of each level, in training and on held-out problems.
func levelOverlays(runs []data) []overlay {
	var out []overlay
	for _, level := range levelsOf(runs, "levels") {
		out = append(out, overlay{id: "level-" + level, title: "Success in training, level " + level,
			question: "levels", line: levelOf(level), axes: shares("success")})
	}
	for _, level := range levelsOf(runs, "evaluations") {
		out = append(out, overlay{id: "held-out-level-" + level, title: "Success on held-out problems, level " + level,
			question: "evaluations", axes: shares("success"), line: func(d data) chart.Series {
				return measured(d, "evaluations", "success", level, "level", level)
			}})
	}
	return out
}
