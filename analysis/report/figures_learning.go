package report

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/ropewalk/ropewalk/analysis/report/chart"
	"github.com/ropewalk/ropewalk/internal/seed"
	"github.com/ropewalk/ropewalk/rl/diagnose"
)

// resamples of the bootstrap, as evaluations themselves use.
const resamples = 2000

func (d data) reward() Figure {
	return d.curve("rewards", "reward", chart.Series{Name: "reward", Color: 1}, Figure{
		ID: "reward", Title: "Reward per step", Empty: noSteps,
		Note: "Mean reward of all trajectories that the step sampled, before resampling.",
	}, chart.Chart{YLabel: "mean reward"})
}

func (d data) success() Figure {
	f := d.figure("success", "Success per step, and evaluations", "rewards", "evaluations", "greedy")
	training, greedy := d.answers["rewards"], d.answers["greedy"]
	var lines []chart.Series
	if training.rows() > 0 {
		lines = append(lines, chart.Series{Name: "training", Color: 1, X: training.steps(), Y: training.column("success")})
	}
	sampled := d.evaluated("")
	if len(sampled.X) > 0 {
		sampled.Name, sampled.Color = "held-out, sampled (95%)", 2
		lines = append(lines, sampled)
	}
	if greedy.rows() > 0 {
		lines = append(lines, chart.Series{Name: "held-out, greedy", Color: 3, X: greedy.steps(), Y: greedy.column("success"), Points: true})
	}
	if len(lines) == 0 {
		f.Empty = noSteps
		return f
	}
	f.Note = fmt.Sprintf("Bars are 95%% percentile intervals of %d bootstrap resamples of the problems, each with the mean of its samples. Step 0 is the policy before the first step.", resamples)
	if len(sampled.X) == 0 {
		f.Note = noEvaluations
	}
	thinned(chart.Chart{Title: f.Title, XLabel: "step", YLabel: "success", Unit: chart.Percent, Lines: lines}, &f)
	return f
}

// unit is one evaluation at one step.
type unit struct {
	step float64
	tag  string
}

// evaluated gives each evaluation's success with its interval; of one level, or of all ("").
func (d data) evaluated(level string) chart.Series {
	a := d.answers["evaluations"]
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
	label := level
	if level == "" {
		label = "all"
	}
	out := chart.Series{Bars: true}
	for _, u := range order {
		mean, low, high := diagnose.Bootstrap(means[u], resamples, seed.Rand("bootstrap/"+label, d.run.Seed))
		out.X, out.Y = append(out.X, u.step), append(out.Y, mean)
		out.Low, out.High = append(out.Low, low), append(out.High, high)
	}
	return out
}

func (d data) trainingLevels() Figure {
	f, a, ok := d.asked("levels", "Success by level, in training", "levels", noSteps)
	if !ok {
		return f
	}
	steps, levels, values := a.pivot("level", "success", math.NaN())
	sortNumbers(levels)
	var lines []chart.Series
	for i, level := range levels {
		lines = append(lines, chart.Series{Name: "level " + level, Color: 1 + i%colors, X: steps, Y: values[level]})
	}
	f.Note = "Share of solved trajectories among those that the step sampled, by the level of their problem."
	thinned(chart.Chart{Title: f.Title, XLabel: "step", YLabel: "success", Unit: chart.Percent, Lines: lines}, &f)
	return f
}

func (d data) evaluationLevels() Figure {
	f, a, ok := d.asked("evaluation-levels", "Success by level, held-out problems", "evaluations", noEvaluations)
	if !ok {
		return f
	}
	var levels []string
	for i := range a.rows() {
		if level := a.text(i, "level"); !slices.Contains(levels, level) {
			levels = append(levels, level)
		}
	}
	sortNumbers(levels)
	var lines []chart.Series
	for i, level := range levels {
		s := d.evaluated(level)
		s.Name, s.Color = "level "+level, 1+i%colors
		lines = append(lines, s)
	}
	f.Note = "Sampled success with 95% bootstrap intervals over problems. Step 0 is the policy before the first step."
	thinned(chart.Chart{Title: f.Title, XLabel: "step", YLabel: "success", Unit: chart.Percent, Lines: lines}, &f)
	return f
}

// colors is how many colours the page's style tells apart.
const colors = 8

// sortNumbers sorts texts of numbers by their values.
func sortNumbers(texts []string) {
	slices.SortFunc(texts, func(a, b string) int {
		x, _ := strconv.Atoi(a)
		y, _ := strconv.Atoi(b)
		return x - y
	})
}
