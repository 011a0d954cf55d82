package report

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/ropewalk/ropewalk/analysis/report/chart"
	"github.com/ropewalk/ropewalk/internal/evaluation"
)

var reward = figure{
	id: "reward", title: "Reward per step", asks: []string{"rewards"}, empty: noSteps,
	note: "Mean reward of all trajectories that were sampled in the step, before resampling.",
	axes: chart.Chart{YLabel: "mean reward"}, lines: []line{solid("reward", 1, "reward")},
}

var success = figure{
	id: "success", title: "Success per step, and evaluations", asks: []string{"rewards", "evaluations", "greedy"},
	draw: func(d data, f *Figure) error {
		training, greedy := d.answers["rewards"], d.answers["greedy"]
		var lines []chart.Series
		if training.rows() > 0 {
			lines = append(lines, solid("training", 1, "success").series(training))
		}
		sampled := evaluated(d)
		if len(sampled.X) > 0 {
			sampled.Name, sampled.Color = "held-out, sampled (95%)", 2
			lines = append(lines, sampled)
		}
		if greedy.rows() > 0 {
			s := solid("held-out, greedy", 3, "success").series(greedy)
			s.Points = true
			lines = append(lines, s)
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

// evaluated returns the success of each evaluation with its interval.
func evaluated(d data) chart.Series { return measured(d, "evaluations", "success", "all", "", "") }

// measured returns a column's mean over the problems of each evaluation, with its interval. Only the rows count that
// have the column, and whose key has the value kind. label names the random stream of the bootstrap.
func measured(d data, question, column, label, key, kind string) chart.Series {
	a := d.answers[question]
	var order []unit
	means := map[unit][]float64{}
	for i, step := range a.steps() {
		value := a.number(i, column)
		if math.IsNaN(value) || key != "" && a.text(i, key) != kind {
			continue
		}
		u := unit{step, a.text(i, "tag")}
		if means[u] == nil {
			order = append(order, u)
		}
		means[u] = append(means[u], value)
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

// heldOut draws the success of evaluations, one line for each value of a column of the question. name and label precede
// the value in the line's name and in that of its random stream.
func heldOut(question, key, name, label string) func(d data, f *Figure) error {
	return func(d data, f *Figure) error {
		var lines []chart.Series
		for i, kind := range d.answers[question].kinds(key) {
			s := measured(d, question, "success", label+kind, key, kind)
			s.Name, s.Color = name+kind, 1+i%colors
			lines = append(lines, s)
		}
		if len(lines) == 0 {
			f.Empty = "The tasks of this environment are of one type."
			return nil
		}
		thinned(chart.Chart{Title: f.Title, XLabel: "step", YLabel: "success", Unit: chart.Percent, Lines: lines}, f)
		return nil
	}
}

// heldOutNote explains figures of evaluations.
const heldOutNote = "Sampled success, with 95% bootstrap intervals over problems. Step 0 is the policy before " +
	"the first step."

var trainingLevels = figure{
	id: "levels", title: "Success by level, in training", asks: []string{"levels"}, empty: noSteps,
	note: "Share of sampled trajectories that solved their problem, by the level of the problem.",
	axes: shares("success"), split: &split{key: "level", value: "success", prefix: "level "},
}

var evaluationLevels = figure{
	id: "evaluation-levels", title: "Success by level, held-out problems", asks: []string{"evaluations"},
	empty: noEvaluations, note: heldOutNote, draw: heldOut("evaluations", "level", "level ", ""),
}

// Success by part of a mix of environments. Other runs have no parts, so the figures are left out of their pages.

var trainingParts = figure{
	id: "parts", title: "Success by part of the mix, in training", asks: []string{"parts"}, optional: true,
	note: "Share of sampled trajectories that solved their problem, by the environment that it comes from.",
	axes: shares("success"), split: &split{key: "part", value: "success"},
}

var evaluationParts = figure{
	id: "evaluation-parts", title: "Success by part of the mix, held-out problems", asks: []string{"part_evaluations"},
	optional: true, note: heldOutNote, draw: heldOut("part_evaluations", "part", "", "part "),
}

var evaluationTypes = figure{
	id: "evaluation-types", title: "Success by type of task, held-out problems", asks: []string{"evaluation_types"},
	note: heldOutNote, draw: heldOut("evaluation_types", "task_type", "", "type/"),
}

var evaluationScores = figure{
	id: "evaluation-scores", title: "Score, exact match and F1, held-out problems", asks: []string{"evaluation_scores"},
	note: "Means over problems, each represented by the mean of its samples, with 95% bootstrap intervals. Nothing " +
		"is trained on them.",
	draw: func(d data, f *Figure) error {
		c := sharesFromZero("mean")
		c.Title, c.XLabel = f.Title, "step"
		for i, of := range []struct{ column, name string }{
			{"score", "score"}, {"exact_match", "exact match"}, {"f1", "F1"},
		} {
			s := measured(d, "evaluation_scores", of.column, of.column, "", "")
			if len(s.X) > 0 {
				s.Name, s.Color = of.name, 1+i
				c.Lines = append(c.Lines, s)
			}
		}
		if len(c.Lines) == 0 {
			f.Empty = "This environment grades no episodes and compares no answers by their words."
			return nil
		}
		thinned(c, f)
		return nil
	},
}

// coldStart compares the policies before and after a warm start on the form of calls.
var coldStart = figure{
	id: "cold-start", title: "What the warm start changed",
	note: "Held-out episodes of the policy before the warm start and of the one after it. Demonstrations of the form " +
		"alone should raise the validity of calls and not success (rStar2 Table 1). An episode counts as valid if it " +
		"calls and every call of it decodes, of a tool and with arguments that there are. Brackets are 95% intervals.",
	draw: func(d data, f *Figure) error {
		c := d.cold
		calls, success := c.Verdicts()
		f.Table = &Table{Columns: []string{"share of episodes", "before", "after", "verdict"}, Text: true,
			Rows: [][]string{
				{"valid calls", c.Before.Calls.Rate.String(), c.After.Calls.Rate.String(), calls},
				{"success", c.Before.Success.String(), c.After.Success.String(), success},
			}}
		return nil
	},
}

// colors is the number of series colours in the page's style.
const colors = 8

// sortNumbers sorts texts; texts of numbers by their values.
func sortNumbers(texts []string) {
	slices.SortFunc(texts, func(a, b string) int {
		x, notX := strconv.Atoi(a)
		y, notY := strconv.Atoi(b)
		if notX != nil || notY != nil {
			return strings.Compare(a, b)
		}
		return x - y
	})
}
