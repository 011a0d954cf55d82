package report

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/ropewalk/ropewalk/analysis/report/chart"
	"github.com/ropewalk/ropewalk/internal/evaluation"
)

var reward = figure{
	id: "reward", title: "Reward per step", asks: []string{"rewards"}, values: "reward", empty: noSteps,
	note: "Mean reward of all trajectories that were sampled in the step, before resampling.",
	draw: curve("reward", chart.Series{Name: "reward", Color: 1}, chart.Chart{YLabel: "mean reward"}),
}

var success = figure{
	id: "success", title: "Success per step, and evaluations", asks: []string{"rewards", "evaluations", "greedy"},
	draw: func(d data, f *Figure) error {
		training, greedy := d.answers["rewards"], d.answers["greedy"]
		var lines []chart.Series
		if training.rows() > 0 {
			lines = append(lines, chart.Series{Name: "training", Color: 1, X: training.steps(),
				Y: training.column("success")})
		}
		sampled := evaluated(d, "")
		if len(sampled.X) > 0 {
			sampled.Name, sampled.Color = "held-out, sampled (95%)", 2
			lines = append(lines, sampled)
		}
		if greedy.rows() > 0 {
			lines = append(lines, chart.Series{Name: "held-out, greedy", Color: 3, X: greedy.steps(),
				Y: greedy.column("success"), Points: true})
		}
		if len(lines) == 0 {
			f.Empty = noSteps
			return nil
		}
		f.Note = fmt.Sprintf("Error bars are 95%% percentile intervals from %d bootstrap resamples of the problems, "+
			"each represented by the mean of its samples; at 0%% and 100%% they are Wilson's. Step 0 is the policy "+
			"before the first step.", evaluation.Resamples)
		if len(sampled.X) == 0 {
			f.Note = noEvaluations
		}
		thinned(chart.Chart{Title: f.Title, XLabel: "step", YLabel: "success", Unit: chart.Percent, Lines: lines}, f)
		return nil
	},
}

// unit identifies an evaluation: its step and its tag.
type unit struct {
	step float64
	tag  string
}

// evaluated returns the success of each evaluation with its interval, for one level or for all ("").
func evaluated(d data, level string) chart.Series {
	label := level
	if level == "" {
		label = "all"
	}
	return evaluatedIn(d, d.answers["evaluations"], level, label)
}

// evaluatedIn does so with an answer and a column level of its own. label names the random stream of the intervals.
func evaluatedIn(d data, a answer, level, label string) chart.Series {
	var order []unit
	means := map[unit][]float64{}
	for i, step := range a.steps() {
		if level != "" && a.text(i, "level") != level {
			continue
		}
		u := unit{step, a.text(i, "tag")}
		if means[u] == nil {
			order = append(order, u)
		}
		means[u] = append(means[u], a.number(i, "success"))
	}
	out := chart.Series{Bars: true, Reach: reach(a.steps())}
	for _, u := range order {
		rate := evaluation.Rate(means[u], d.run.Seed, label)
		out.X, out.Y = append(out.X, u.step), append(out.Y, rate.Success)
		out.Low, out.High = append(out.Low, rate.CILow), append(out.High, rate.CIHigh)
	}
	return out
}

// Evaluations are joined by a line if they are at most so many steps, or such a share of the run, apart. A longer line
// would suggest a course that nothing measured.
const joinedSteps, joinedShare = 20, 0.1

// reach is the longest distance of neighbouring evaluations that a line bridges.
func reach(steps []float64) float64 {
	if len(steps) == 0 {
		return 0
	}
	return max(joinedSteps, joinedShare*slices.Max(steps))
}

var trainingLevels = figure{
	id: "levels", title: "Success by level, in training", asks: []string{"levels"}, empty: noSteps,
	note: "Share of sampled trajectories that solved their problem, by the level of the problem.",
	draw: func(d data, f *Figure) error {
		a := d.answers["levels"]
		steps, levels, values := a.pivot("level", "success", math.NaN())
		sortNumbers(levels)
		var lines []chart.Series
		for i, level := range levels {
			lines = append(lines, chart.Series{Name: "level " + level, Color: 1 + i%colors, X: steps, Y: values[level]})
		}
		thinned(chart.Chart{Title: f.Title, XLabel: "step", YLabel: "success", Unit: chart.Percent, Lines: lines}, f)
		return nil
	},
}

var evaluationLevels = figure{
	id: "evaluation-levels", title: "Success by level, held-out problems", asks: []string{"evaluations"},
	empty: noEvaluations,
	note:  "Sampled success, with 95% bootstrap intervals over problems. Step 0 is the policy before the first step.",
	draw: func(d data, f *Figure) error {
		a := d.answers["evaluations"]
		var levels []string
		for i := range a.rows() {
			if level := a.text(i, "level"); !slices.Contains(levels, level) {
				levels = append(levels, level)
			}
		}
		sortNumbers(levels)
		var lines []chart.Series
		for i, level := range levels {
			s := evaluated(d, level)
			s.Name, s.Color = "level "+level, 1+i%colors
			lines = append(lines, s)
		}
		thinned(chart.Chart{Title: f.Title, XLabel: "step", YLabel: "success", Unit: chart.Percent, Lines: lines}, f)
		return nil
	},
}

// colors is the number of series colours in the page's style.
const colors = 8

// sortNumbers sorts texts of numbers by their values.
func sortNumbers(texts []string) {
	slices.SortFunc(texts, func(a, b string) int {
		x, _ := strconv.Atoi(a)
		y, _ := strconv.Atoi(b)
		return x - y
	})
}
