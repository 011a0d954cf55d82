package report

import (
	"math"
	"slices"

	"github.com/ropewalk/ropewalk/analysis/report/chart"
	"github.com/ropewalk/ropewalk/internal/evaluation"
)

// heldOutQuestions are those of the figures about kinds of held-out tasks and about what is measured next to success.
var heldOutQuestions = []Question{
	{"evaluation_kinds", `select count(task_type) + count(score) + count(exact_match) as n
from evaluations where run = RUN and not greedy`},
	{"evaluation_types", `select step, tag, task_type, problem_id, avg(success::int) as success
from evaluations where run = RUN and not greedy and task_type is not null
group by all order by step nulls first, tag, task_type, problem_id`},
	{"evaluation_scores", `select step, tag, problem_id, avg(score) as score, avg(exact_match::int) as exact_match,
  avg(f1) as f1
from evaluations where run = RUN and not greedy
group by all order by step nulls first, tag, problem_id`},
}

// measured returns a figure of each evaluation with its interval over problems. Rows that only does not accept, and
// rows without the figure, do not count. label is that of the bootstrap.
func measured(d data, question, column, label string, only func(a answer, row int) bool) chart.Series {
	a := d.answers[question]
	var order []unit
	means := map[unit][]float64{}
	for i, step := range a.steps() {
		value := a.number(i, column)
		if math.IsNaN(value) || !only(a, i) {
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

var evaluationTypes = figure{
	id: "evaluation-types", title: "Success by type of task, held-out problems", asks: []string{"evaluation_types"},
	note: "Sampled success, with 95% bootstrap intervals over problems. Step 0 is the policy before the first step.",
	draw: func(d data, f *Figure) error {
		a := d.answers["evaluation_types"]
		var types []string
		for i := range a.rows() {
			if name := a.text(i, "task_type"); !slices.Contains(types, name) {
				types = append(types, name)
			}
		}
		if len(types) == 0 {
			f.Empty = "The tasks of this environment are of one type."
			return nil
		}
		slices.Sort(types)
		var lines []chart.Series
		for i, name := range types {
			s := measured(d, "evaluation_types", "success", "type/"+name,
				func(a answer, row int) bool { return a.text(row, "task_type") == name })
			s.Name, s.Color = name, 1+i%colors
			lines = append(lines, s)
		}
		thinned(chart.Chart{Title: f.Title, XLabel: "step", YLabel: "success", Unit: chart.Percent, Lines: lines}, f)
		return nil
	},
}

var evaluationScores = figure{
	id: "evaluation-scores", title: "Score, exact match and F1, held-out problems", asks: []string{"evaluation_scores"},
	note: "Means over problems, each represented by the mean of its samples, with 95% bootstrap intervals. Nothing " +
		"is trained on them.",
	draw: func(d data, f *Figure) error {
		var lines []chart.Series
		for i, of := range []struct{ column, name string }{
			{"score", "score"}, {"exact_match", "exact match"}, {"f1", "F1"},
		} {
			s := measured(d, "evaluation_scores", of.column, of.column, func(answer, int) bool { return true })
			if len(s.X) > 0 {
				s.Name, s.Color = of.name, 1+i
				lines = append(lines, s)
			}
		}
		if len(lines) == 0 {
			f.Empty = "This environment grades no episodes and compares no answers by their words."
			return nil
		}
		thinned(chart.Chart{Title: f.Title, XLabel: "step", YLabel: "mean", Unit: chart.Percent, FromZero: true,
			Lines: lines}, f)
		return nil
	},
}
