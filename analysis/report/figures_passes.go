package report

import (
	"fmt"
	"math"

	"github.com/ropewalk/ropewalk/analysis/compare"
	"github.com/ropewalk/ropewalk/analysis/report/chart"
	"github.com/ropewalk/ropewalk/rl/diagnose"
)

// mostK bounds the k of pass@k.
const mostK = 64

// attempts counts the samples of a problem, and those that solved it.
type attempts struct{ n, solved int }

// passAt is the mean of pass@k over problems.
func passAt(k int, problems []attempts) (float64, error) {
	sum := 0.0
	for _, p := range problems {
		x, err := diagnose.PassAtK(p.n, p.solved, k)
		if err != nil {
			return 0, err
		}
		sum += x
	}
	return sum / float64(len(problems)), nil
}

// firstAndLast returns the attempts of a run's first and last evaluation, by step.
func firstAndLast(a answer) (steps []float64, problems [][]attempts) {
	var last unit
	for i, step := range a.steps() {
		u := unit{step, a.text(i, "tag")}
		if len(steps) == 0 || u != last {
			steps, problems, last = append(steps, step), append(problems, nil), u
		}
		n := a.count(i, "samples")
		of := &problems[len(problems)-1]
		*of = append(*of, attempts{n, int(math.Round(a.number(i, "success") * float64(n)))})
	}
	if n := len(steps); n > 1 {
		return []float64{steps[0], steps[n-1]}, [][]attempts{problems[0], problems[n-1]}
	}
	return steps, problems
}

var passAtK = figure{
	id: "pass-at-k", title: "pass@k on held-out problems", asks: []string{"evaluations"}, empty: noEvaluations,
	note: "The probability that at least one of k samples solves a problem (unbiased estimate). If training raises " +
		"the curve only near k = 1, the policy became more reliable at what it could already do; if it raises the " +
		"whole curve, the policy solves problems that it could not solve before.",
	draw: func(d data, f *Figure) error {
		f.Table = &Table{Columns: []string{"evaluation", "problems", "avg@n"}}
		c := chart.Chart{Title: f.Title, XLabel: "k", YLabel: "pass@k", Unit: chart.Percent}
		steps, evaluations := firstAndLast(d.answers["evaluations"])
		for i, problems := range evaluations {
			least := mostK
			for _, p := range problems {
				least = min(least, p.n)
			}
			line := chart.Series{Name: fmt.Sprintf("step %g", steps[i]), Color: 1 + i, Points: least == 1}
			for k := 1; k <= least; k++ {
				p, err := passAt(k, problems)
				if err != nil {
					return err
				}
				line.X, line.Y = append(line.X, float64(k)), append(line.Y, p)
			}
			c.Lines = append(c.Lines, line)
			f.Table.Rows = append(f.Table.Rows, []string{line.Name, whole(len(problems)), percent(line.Y[0])})
		}
		f.draw(c)
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
			"run has settled, at success or at failure; ARLArena uses it to call a run stable. It names no bound; "+
			"here the variance must be below %s, that of 5 points.", percent(diagnose.DefaultTail),
			plainNumber(diagnose.StableVariance))
		f.Table = &Table{Columns: stabilityColumns, Rows: [][]string{stabilityRow(s)}}
		return nil
	},
}

var stabilityColumns = []string{"steps", "mean success", "variance", "stable"}

func stabilityRow(s diagnose.Stability) []string {
	verdict := "no"
	if s.Settled() {
		verdict = "yes"
	}
	return []string{whole(s.Steps), percent(s.Mean), plainNumber(s.Variance), verdict}
}

// stabilities is the table of several runs, such as the seeds of a recipe: which of them are stable at the end.
func stabilities(runs []data) *Table {
	t := &Table{Columns: append([]string{"run"}, stabilityColumns...)}
	stable := 0
	for i, d := range runs {
		s, err := diagnose.Stable(d.answers["rewards"].column("success"), diagnose.DefaultTail)
		if err != nil {
			continue // the figure of the run says so
		}
		if s.Settled() {
			stable++
		}
		t.Rows = append(t.Rows, append([]string{compare.Letter(i) + " " + d.run.Run}, stabilityRow(s)...))
	}
	t.Rows = append(t.Rows, []string{"all", "", "", "", fmt.Sprintf("%d of %d", stable, len(t.Rows))})
	return t
}
