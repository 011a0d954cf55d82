package report

import (
	"fmt"
	"math"

	"github.com/ropewalk/ropewalk/analysis/report/chart"
	"github.com/ropewalk/ropewalk/rl/diagnose"
)

// groupsOf collects the rows of each group, by step.
func groupsOf(a answer) (steps []float64, groups [][]diagnose.GroupReward) {
	last := ""
	for i, step := range a.steps() {
		if len(steps) == 0 || steps[len(steps)-1] != step {
			steps, groups, last = append(steps, step), append(groups, nil), ""
		}
		of := &groups[len(groups)-1]
		if id := a.text(i, "group_id"); id != last {
			*of, last = append(*of, diagnose.GroupReward{}), id
		}
		g := &(*of)[len(*of)-1]
		for range a.count(i, "n") {
			g.Rewards = append(g.Rewards, a.number(i, "reward"))
			if a.count(i, "kept") == 1 {
				g.Kept = append(g.Kept, a.number(i, "reward"))
			}
		}
	}
	return steps, groups
}

var groupSpread = figure{
	id: "group-rewards", title: "Rewards inside groups", asks: []string{"group_rewards"}, empty: noSteps,
	note: "Means over a step's groups. Advantages come from the deviation within a group, so resampling should " +
		"raise it among the kept trajectories. The maximum shows what the policy can do at best, the mean what it " +
		"usually does.",
	draw: func(d data, f *Figure) error {
		steps, groups := groupsOf(d.answers["group_rewards"])
		var told []diagnose.GroupRewardReport
		for _, of := range groups {
			var g diagnose.GroupRewards
			if err := g.Add(of...); err != nil {
				return err
			}
			told = append(told, g.Report())
		}
		type report = diagnose.GroupRewardReport
		kept := each(told, func(r report) float64 {
			if r.KeptGroups == 0 {
				return math.NaN()
			}
			return r.KeptDeviation.Mean
		})
		lines := []chart.Series{
			{Name: "mean", Color: 1, X: steps, Y: each(told, func(r report) float64 { return r.Mean.Mean })},
			{Name: "maximum", Color: 3, X: steps, Y: each(told, func(r report) float64 { return r.Max.Mean })},
			{Name: "deviation", Color: 2, X: steps, Y: each(told, func(r report) float64 { return r.Deviation.Mean }),
				Dashed: true},
		}
		if known(kept) {
			lines = append(lines, chart.Series{Name: "deviation among kept", Color: 5, X: steps, Y: kept, Dashed: true})
		}
		thinned(chart.Chart{Title: f.Title, XLabel: "step", YLabel: "reward", Lines: lines}, f)
		return nil
	},
}

// mostK bounds the k of pass@k.
const mostK = 64

var passAtK = figure{
	id: "pass-at-k", title: "pass@k on held-out problems", asks: []string{"evaluations"}, empty: noEvaluations,
	note: "The probability that at least one of k samples solves a problem (unbiased estimate). If training raises " +
		"the curve only near k = 1, the policy became more reliable at what it could already do; if it raises the " +
		"whole curve, the policy solves problems that it could not solve before.",
	draw: func(d data, f *Figure) error {
		a := d.answers["evaluations"]
		var order []unit
		solved := map[unit]*diagnose.Solved{}
		for i, step := range a.steps() {
			u := unit{step, a.text(i, "tag")}
			if solved[u] == nil {
				order, solved[u] = append(order, u), new(diagnose.Solved)
			}
			n := a.count(i, "samples")
			scores, right := make([]float64, n), make([]bool, n)
			for k := range int(math.Round(a.number(i, "success") * float64(n))) {
				scores[k], right[k] = 1, true
			}
			if err := solved[u].Add(scores, right); err != nil {
				return err
			}
		}
		shown := []unit{order[0]}
		if len(order) > 1 {
			shown = append(shown, order[len(order)-1])
		}
		f.Table = &Table{Columns: []string{"evaluation", "problems", "avg@n"}}
		var lines []chart.Series
		for i, u := range shown {
			name := fmt.Sprintf("step %g", u.step)
			line := chart.Series{Name: name, Color: 1 + i, Points: solved[u].Report().N == 1}
			for k := 1; k <= min(solved[u].Report().N, mostK); k++ {
				p, err := solved[u].PassAtK(k)
				if err != nil {
					return err
				}
				line.X, line.Y = append(line.X, float64(k)), append(line.Y, p)
			}
			lines = append(lines, line)
			r := solved[u].Report()
			f.Table.Rows = append(f.Table.Rows, []string{name, whole(r.Tasks), percent(r.AvgAtN)})
		}
		f.draw(chart.Chart{Title: f.Title, XLabel: "k", YLabel: "pass@k", Unit: chart.Percent, Lines: lines})
		return nil
	},
}

var stability = figure{
	id: "stability", title: "Stability at the end", asks: []string{"rewards"},
	draw: func(d data, f *Figure) error {
		a := d.answers["rewards"]
		s, err := diagnose.Stable(a.column("success"), diagnose.DefaultTail)
		if err != nil {
			return err
		}
		if s.Steps < 2 {
			f.Empty = fmt.Sprintf("Two steps are needed in the last %s of the run; %d are done.",
				percent(diagnose.DefaultTail), a.rows())
			return nil
		}
		f.Note = fmt.Sprintf("Success in training over the last %s of the steps. A small variance means that the "+
			"run has settled, at success or at failure; ARLArena uses it to call a run stable.",
			percent(diagnose.DefaultTail))
		f.Table = &Table{Columns: []string{"steps", "mean success", "variance"},
			Rows: [][]string{{whole(s.Steps), percent(s.Mean), plainNumber(s.Variance)}}}
		return nil
	},
}

// qualities collects the inputs of resample-on-correct.
func qualities(d data) (stepReports[diagnose.QualityReport], error) {
	a := d.answers["qualities"]
	steps, all, err := byStep(a, one[diagnose.Qualities], func(g *diagnose.Qualities, i int) error {
		q := diagnose.Quality{Error: a.number(i, "error_penalty"), Format: a.number(i, "format_penalty"),
			Answers: a.count(i, "answer_tags"), Kept: a.count(i, "kept") == 1}
		for range a.count(i, "n") {
			if err := g.Add(q); err != nil {
				return err
			}
		}
		return nil
	})
	return stepReports[diagnose.QualityReport]{steps, reports(all, (*diagnose.Qualities).Report)}, err
}

var penalties = figure{
	id: "penalties", title: "Penalties of resample-on-correct", asks: []string{"qualities"}, empty: noSteps,
	note: "Mean penalty per trajectory for failed tool calls and for its format, over all sampled trajectories and " +
		"over the kept ones. Where resample-on-correct works, the kept ones have lower penalties.",
	draw: func(d data, f *Figure) error {
		of, err := qualities(d)
		if err != nil {
			return err
		}
		type report = diagnose.QualityReport
		thinned(chart.Chart{Title: f.Title, XLabel: "step", YLabel: "penalty", FromZero: true, Lines: []chart.Series{
			{Name: "errors, all", Color: 2, X: of.steps,
				Y: each(of.reports, func(r report) float64 { return r.Error })},
			{Name: "errors, kept", Color: 2, X: of.steps,
				Y: each(of.reports, func(r report) float64 { return r.KeptError }), Dashed: true},
			{Name: "format, all", Color: 6, X: of.steps,
				Y: each(of.reports, func(r report) float64 { return r.Format })},
			{Name: "format, kept", Color: 6, X: of.steps,
				Y: each(of.reports, func(r report) float64 { return r.KeptFormat }), Dashed: true},
		}}, f)
		return nil
	},
}

var answerCounts = figure{
	id: "answer-counts", title: "Answers per trajectory", asks: []string{"qualities"}, empty: noSteps,
	note: "A trajectory without an answer ran out of turns or tokens; one with several answers hedges.",
	draw: func(d data, f *Figure) error {
		of, err := qualities(d)
		if err != nil {
			return err
		}
		type report = diagnose.QualityReport
		thinned(chart.Chart{Title: f.Title, XLabel: "step", YLabel: "trajectories", Unit: chart.Percent,
			Stack: []chart.Series{
				{Name: "one", Color: 1, X: of.steps, Y: each(of.reports,
					func(r report) float64 { return r.OneAnswer })},
				{Name: "none", Color: 4, X: of.steps,
					Y: each(of.reports, func(r report) float64 { return r.NoAnswer })},
				{Name: "several", Color: 2, X: of.steps,
					Y: each(of.reports, func(r report) float64 { return r.Several })},
			}}, f)
		return nil
	},
}

var vspoDraws = figure{
	id: "value-scores", title: "What VSPO sampled", asks: []string{"value_scores"},
	note: "Share of a step's groups that were replaced by copies of groups with a higher value score, and the mean " +
		"value score V. The table counts groups by the number of their copies in the batch; groups with 0 copies " +
		"were dropped.",
	draw: func(d data, f *Figure) error {
		a := d.answers["value_scores"]
		scored := false
		for i := range a.rows() {
			scored = scored || a.number(i, "score") > 0
		}
		if !scored {
			f.Empty = "No group has a value score: the recipe does not sample by value."
			return nil
		}
		steps, all, err := byStep(a, one[diagnose.Values], func(g *diagnose.Values, i int) error {
			return g.Add(diagnose.Value{Score: a.number(i, "score"), N: a.count(i, "copies"),
				Omega: a.number(i, "weight")})
		})
		if err != nil {
			return err
		}
		told := reports(all, (*diagnose.Values).Report)
		var run diagnose.Values
		for _, g := range all {
			run.Merge(g)
		}
		f.Table = &Table{Columns: []string{"copies of a group", "groups"}, Folded: "groups by their copies"}
		for _, bin := range run.Report().N {
			f.Table.Rows = append(f.Table.Rows, []string{whole(bin.Value), whole(bin.Count)})
		}
		type report = diagnose.ValueReport
		thinned(chart.Chart{Title: f.Title, XLabel: "step", YLabel: "replaced; V", FromZero: true,
			Lines: []chart.Series{
				{Name: "replaced", Color: 2, X: steps, Y: each(told, func(r report) float64 { return r.Replaced })},
				{Name: "mean value score", Color: 1, X: steps,
					Y: each(told, func(r report) float64 { return r.Score.Mean })},
			}}, f)
		return nil
	},
}
