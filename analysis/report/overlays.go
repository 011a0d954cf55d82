package report

import (
	"math"

	"github.com/ropewalk/ropewalk/analysis/report/chart"
	"github.com/ropewalk/ropewalk/rl/diagnose"
)

// percentChart and countChart are the axes of shares and of amounts.
var percentChart = chart.Chart{YLabel: "share", Unit: chart.Percent}

func countChart(label string) chart.Chart { return chart.Chart{YLabel: label, FromZero: true} }

// overlays are the parts of a page about several runs.
var overlays = []overlaySection{
	{id: "learning", title: "Learning", more: levelOverlays, figures: []overlay{
		{id: "reward", title: "Reward per step", asks: []string{"rewards"}, line: of("rewards", "reward"),
			chart: chart.Chart{YLabel: "mean reward"}, note: reward.note},
		{id: "success", title: "Success per step, in training", asks: []string{"rewards"},
			line: of("rewards", "success"), chart: chart.Chart{YLabel: "success", Unit: chart.Percent},
			note: "Share of the sampled trajectories that solved their problem."},
		{id: "held-out", title: "Success on held-out problems", asks: []string{"evaluations"},
			line:  func(d data) chart.Series { return evaluated(d, "") },
			chart: chart.Chart{YLabel: "success", Unit: chart.Percent},
			note: "Sampled, with the 95% interval of each run. The table of differences has the intervals of the " +
				"differences, which are usually narrower, because they compare the same problems."},
		{id: "greedy", title: "Success on held-out problems, decoded greedily", asks: []string{"greedy"},
			line: func(d data) chart.Series {
				s := of("greedy", "success")(d)
				s.Reach = reach(s.X)
				return s
			}, chart: chart.Chart{YLabel: "success", Unit: chart.Percent}},
	}},
	{id: "update", title: "Update", figures: []overlay{
		{id: "entropy", title: "Entropy", asks: []string{"updates"}, line: of("updates", "entropy"),
			chart: countChart("nats per token"), note: entropy.note},
		{id: "kl", title: "Divergence from the sampling policy", asks: []string{"updates"}, line: of("updates", "kl"),
			chart: chart.Chart{YLabel: "nats per token"}, note: divergence.note},
		{id: "reference-kl", title: "Divergence from the reference policy", asks: []string{"updates"},
			line: of("updates", "reference_kl"), chart: chart.Chart{YLabel: "nats per token"},
			note: "As the loss estimates it."},
		{id: "lengths", title: "Response lengths", asks: []string{"lengths"}, line: of("lengths", "mean"),
			chart: countChart("tokens"), note: "Mean of the tokens that the policy wrote in a trajectory."},
		{id: "clipping", title: "Clipped ratios", asks: []string{"clipping"}, line: of("clipping", "clipped"),
			chart: percentChart, note: "Share of tokens whose importance ratio was clipped."},
		{id: "gradients", title: "Gradient norm", asks: []string{"gradients"}, line: of("gradients", "norm"),
			chart: countChart("norm"), note: "Mean over each step's optimiser steps, before clipping."},
		{id: "advantages", title: "Standard deviation of the advantages", asks: []string{"advantages"},
			line: of("advantages", "std"), chart: countChart("advantage"), note: "Over the trained tokens."},
		{id: "critic", title: "Explained variance of the critic", asks: []string{"critic"},
			line: of("critic", "explained"), chart: percentChart},
	}},
	{id: "selection", title: "Rollout and selection", figures: []overlay{
		{id: "kept", title: "Kept trajectories", asks: []string{"outcomes"}, line: keptShare, chart: percentChart,
			note: "Share of the sampled trajectories that resampling kept."},
		{id: "zero-advantage", title: "Groups without an advantage", asks: []string{"group_rewards"},
			line: zeroShare, chart: percentChart, note: "Share of groups whose rewards are all equal."},
		{id: "tool-errors", title: "Tool errors in positive trajectories", asks: []string{"tool_errors"},
			line: of("tool_errors", "positive"), chart: percentChart, note: "Share of their calls that failed."},
		{id: "tool-calls", title: "Tool calls", asks: []string{"effort"}, chart: countChart("per trajectory"),
			line: effortOf(func(r diagnose.EffortReport) float64 { return r.Calls.Mean })},
		{id: "turns", title: "Turns", asks: []string{"effort"}, chart: countChart("per trajectory"),
			line: effortOf(func(r diagnose.EffortReport) float64 { return r.Turns.Mean })},
		{id: "truncated", title: "Trajectories cut off by the token limit", asks: []string{"effort"},
			line:  effortOf(func(r diagnose.EffortReport) float64 { return r.Truncated }),
			chart: percentChart},
		{id: "seconds", title: "Time of a step", asks: []string{"orchestration"}, line: of("orchestration", "seconds"),
			chart: chart.Chart{YLabel: "seconds", Unit: chart.Seconds, FromZero: true},
			note:  "Without evaluations and standstills. Compare it on equal machines only."},
	}},
}

// levelOverlays are figures of each level, in training and on held-out problems.
func levelOverlays(runs []data) []overlay {
	var out []overlay
	axes := chart.Chart{YLabel: "success", Unit: chart.Percent}
	for _, level := range levelsOf(runs, "levels") {
		out = append(out, overlay{id: "level-" + level, title: "Success in training, level " + level,
			asks: []string{"levels"}, line: levelOf(level), chart: axes})
	}
	for _, level := range levelsOf(runs, "evaluations") {
		out = append(out, overlay{id: "held-out-level-" + level, title: "Success on held-out problems, level " + level,
			asks: []string{"evaluations"}, chart: axes, line: func(d data) chart.Series { return evaluated(d, level) }})
	}
	return out
}

// keptShare is the share of trajectories that each step kept.
func keptShare(d data) chart.Series {
	steps, outcomes, values := d.answers["outcomes"].pivot("outcome", "trajectories", 0)
	y := make([]float64, len(steps))
	for i := range steps {
		sum := 0.0
		for _, name := range outcomes {
			sum += values[name][i]
		}
		if kept := values[keptOutcome]; kept != nil {
			y[i] = kept[i] / sum
		}
	}
	return chart.Series{X: steps, Y: y}
}

// zeroShare is the share of groups without an advantage.
func zeroShare(d data) chart.Series {
	steps, groups := groupsOf(d.answers["group_rewards"])
	y := make([]float64, len(steps))
	for i, of := range groups {
		var z diagnose.ZeroAdvantage
		y[i] = math.NaN()
		for _, g := range of {
			if err := z.Add(g.Rewards); err != nil { // rewards that are no numbers
				return chart.Series{}
			}
		}
		if r := z.Report(); r.Groups > 0 {
			y[i] = r.Fraction
		}
	}
	return chart.Series{X: steps, Y: y}
}

// effortOf is a line of what trajectories cost.
func effortOf(value func(diagnose.EffortReport) float64) func(d data) chart.Series {
	return func(d data) chart.Series {
		of, err := efforts(d)
		if err != nil { // lengths that are no numbers
			return chart.Series{}
		}
		return chart.Series{X: of.steps, Y: each(of.reports, value)}
	}
}
