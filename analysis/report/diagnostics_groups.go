package report

import (
	"fmt"
	"math"

	"github.com/ropewalk/ropewalk/analysis/report/chart"
	"github.com/ropewalk/ropewalk/rl/diagnose"
)

// groupDiagnostics are of rewards and of what resampling made of them.
func (d data) groupDiagnostics() []Figure {
	steps, groups := groupsOf(d.answers["group_rewards"])
	qualities := d.qualities()
	return []Figure{d.zeroAdvantage(steps, groups), d.groupSpread(steps, groups), d.passAtK(), d.stability(), d.penalties(qualities), d.answerCounts(qualities), d.copies()}
}

// groupsOf joins the rows of each group, step by step.
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

func (d data) zeroAdvantage(steps []float64, groups [][]diagnose.GroupReward) Figure {
	f, _, ok := d.asked("zero-advantage", "Tasks without an advantage", "group_rewards", noSteps)
	if !ok {
		return f
	}
	var told []diagnose.ZeroAdvantageReport
	for _, of := range groups {
		var z diagnose.ZeroAdvantage
		for _, g := range of {
			if err := z.Add(g.Rewards); err != nil {
				return f.refused(err)
			}
		}
		told = append(told, z.Report())
	}
	f.Note = fmt.Sprintf("Share of a step's groups whose rewards have a variance below %g: every advantage in them is 0 and they teach nothing. Much of it at the top says that tasks are too easy by now, at the bottom that they are out of reach.", diagnose.DefaultMinVariance)
	thinned(chart.Chart{Title: f.Title, XLabel: "step", YLabel: "groups", Unit: chart.Percent, Stack: []chart.Series{
		{Name: "never solved", Color: 4, X: steps, Y: each(told, func(r diagnose.ZeroAdvantageReport) float64 { return r.SolveNone })},
		{Name: "always solved", Color: 3, X: steps, Y: each(told, func(r diagnose.ZeroAdvantageReport) float64 { return r.SolveAll })},
	}}, &f)
	return f
}

func (d data) groupSpread(steps []float64, groups [][]diagnose.GroupReward) Figure {
	f, _, ok := d.asked("group-rewards", "Rewards inside groups", "group_rewards", noSteps)
	if !ok {
		return f
	}
	var told []diagnose.GroupRewardReport
	for _, of := range groups {
		var g diagnose.GroupRewards
		if err := g.Add(of...); err != nil {
			return f.refused(err)
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
	f.Note = "Means over a step's groups. The deviation within a group is what advantages are made of: resampling is to raise it in what is kept. The greatest reward shows what the policy can do at its best, the mean what it does."
	lines := []chart.Series{
		{Name: "mean", Color: 1, X: steps, Y: each(told, func(r report) float64 { return r.Mean.Mean })},
		{Name: "greatest", Color: 3, X: steps, Y: each(told, func(r report) float64 { return r.Max.Mean })},
		{Name: "deviation", Color: 2, X: steps, Y: each(told, func(r report) float64 { return r.Deviation.Mean }), Dashed: true},
	}
	if known(kept) {
		lines = append(lines, chart.Series{Name: "deviation of what is kept", Color: 5, X: steps, Y: kept, Dashed: true})
	}
	thinned(chart.Chart{Title: f.Title, XLabel: "step", YLabel: "reward", Lines: lines}, &f)
	return f
}

// mostK bounds the k of pass@k.
const mostK = 64

func (d data) passAtK() Figure {
	f, a, ok := d.asked("pass-at-k", "pass@k on held-out problems", "evaluations", noEvaluations)
	if !ok {
		return f
	}
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
			return f.refused(err)
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
				return f.refused(err)
			}
			line.X, line.Y = append(line.X, float64(k)), append(line.Y, p)
		}
		lines = append(lines, line)
		r := solved[u].Report()
		f.Table.Rows = append(f.Table.Rows, []string{name, whole(r.Tasks), percent(r.AvgAtN)})
	}
	f.Note = "The chance that at least one of k samples solves a problem (unbiased estimate). A curve that rises at k = 1 alone says that training made sure of what the policy could do before; one that rises throughout, that it can do more."
	f.draw(chart.Chart{Title: f.Title, XLabel: "k", YLabel: "pass@k", Unit: chart.Percent, Lines: lines})
	return f
}

func (d data) stability() Figure {
	f := d.figure("stability", "Stability at the end", "rewards")
	a := d.answers["rewards"]
	s, err := diagnose.Stable(a.column("success"), diagnose.DefaultTail)
	if err != nil {
		return f.refused(err)
	}
	if s.Steps < 2 {
		f.Empty = fmt.Sprintf("It takes two steps in the last %s of the run; %d are done.", percent(diagnose.DefaultTail), a.rows())
		return f
	}
	f.Note = fmt.Sprintf("Success in training over the last %s of the steps. A small variance means that the run has settled (at success or at failure); ARLArena calls runs stable by it.", percent(diagnose.DefaultTail))
	f.Table = &Table{Columns: []string{"steps", "mean success", "variance"}, Rows: [][]string{{whole(s.Steps), percent(s.Mean), plainNumber(s.Variance)}}}
	return f
}

// qualities gathers what resample-on-correct sees.
func (d data) qualities() (out told[diagnose.QualityReport]) {
	a := d.answers["qualities"]
	steps, all, err := byStep(a, one[diagnose.Qualities], func(g *diagnose.Qualities, i int) error {
		q := diagnose.Quality{Error: a.number(i, "error_penalty"), Format: a.number(i, "format_penalty"), Answers: a.count(i, "answer_tags"), Kept: a.count(i, "kept") == 1}
		for range a.count(i, "n") {
			if err := g.Add(q); err != nil {
				return err
			}
		}
		return nil
	})
	return told[diagnose.QualityReport]{steps, reports(all, (*diagnose.Qualities).Report), err}
}

func (d data) penalties(of told[diagnose.QualityReport]) Figure {
	f := d.figure("penalties", "Penalties of resample-on-correct", "qualities")
	if !of.tells(&f, noSteps) {
		return f
	}
	type report = diagnose.QualityReport
	f.Note = "Mean penalties of a trajectory for failed tool calls and for its format, over all that were sampled and over those kept: where resample-on-correct is at work the second are lower."
	thinned(chart.Chart{Title: f.Title, XLabel: "step", YLabel: "penalty", FromZero: true, Lines: []chart.Series{
		{Name: "errors, all", Color: 2, X: of.steps, Y: each(of.reports, func(r report) float64 { return r.Error })},
		{Name: "errors, kept", Color: 2, X: of.steps, Y: each(of.reports, func(r report) float64 { return r.KeptError }), Dashed: true},
		{Name: "format, all", Color: 6, X: of.steps, Y: each(of.reports, func(r report) float64 { return r.Format })},
		{Name: "format, kept", Color: 6, X: of.steps, Y: each(of.reports, func(r report) float64 { return r.KeptFormat }), Dashed: true},
	}}, &f)
	return f
}

func (d data) answerCounts(of told[diagnose.QualityReport]) Figure {
	f := d.figure("answer-counts", "Answers per trajectory", "qualities")
	if !of.tells(&f, noSteps) {
		return f
	}
	type report = diagnose.QualityReport
	f.Note = "Trajectories that close no answer have run out of turns or tokens; those with several answers hedge."
	thinned(chart.Chart{Title: f.Title, XLabel: "step", YLabel: "trajectories", Unit: chart.Percent, Stack: []chart.Series{
		{Name: "one", Color: 1, X: of.steps, Y: each(of.reports, func(r report) float64 { return r.OneAnswer })},
		{Name: "none", Color: 4, X: of.steps, Y: each(of.reports, func(r report) float64 { return r.NoAnswer })},
		{Name: "several", Color: 2, X: of.steps, Y: each(of.reports, func(r report) float64 { return r.Several })},
	}}, &f)
	return f
}

func (d data) copies() Figure {
	f := d.figure("value-scores", "What VSPO drew", "value_scores")
	a := d.answers["value_scores"]
	scored := false
	for i := range a.rows() {
		scored = scored || a.number(i, "score") > 0
	}
	if !scored {
		f.Empty = "No group has a value score: the recipe does not sample by value."
		return f
	}
	steps, all, err := byStep(a, one[diagnose.Values], func(g *diagnose.Values, i int) error {
		return g.Add(diagnose.Value{Score: a.number(i, "score"), N: a.count(i, "copies"), Omega: a.number(i, "weight")})
	})
	if err != nil {
		return f.refused(err)
	}
	told := reports(all, (*diagnose.Values).Report)
	var run diagnose.Values
	for _, g := range all {
		run.Merge(g)
	}
	f.Table = &Table{Columns: []string{"copies of a group", "groups"}}
	for _, bin := range run.Report().N {
		f.Table.Rows = append(f.Table.Rows, []string{whole(bin.Value), whole(bin.Count)})
	}
	type report = diagnose.ValueReport
	f.Note = "Share of a step's groups that were replaced by further copies of groups worth more, and the mean value score V. The table counts how often groups occur in their step's batch; 0 are those dropped."
	thinned(chart.Chart{Title: f.Title, XLabel: "step", YLabel: "replaced; V", FromZero: true, Lines: []chart.Series{
		{Name: "replaced", Color: 2, X: steps, Y: each(told, func(r report) float64 { return r.Replaced })},
		{Name: "mean value score", Color: 1, X: steps, Y: each(told, func(r report) float64 { return r.Score.Mean })},
	}}, &f)
	return f
}
