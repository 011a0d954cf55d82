package experiment

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/ropewalk/ropewalk/internal/terminal"
)

const (
	noValue  = "–"   // for a number that there is not
	stateNew = "new" // of a trial that has committed nothing
)

// text is a value of the outcome for people.
func (o Outcome) text(v float64) string {
	if o.Share {
		return fmt.Sprintf("%.1f%%", 100*v)
	}
	return fmt.Sprintf("%.4g", v)
}

// Difference is a difference of two values for people, with its sign: points where the outcome is a share.
func (o Outcome) Difference(v float64) string {
	if o.Share {
		return fmt.Sprintf("%+.1f", 100*v)
	}
	return fmt.Sprintf("%+.4g", v)
}

// Bounds is an interval for people.
func (i *interval) Bounds(write func(float64) string) string {
	if i == nil {
		return noValue
	}
	return fmt.Sprintf("[%s, %s]", write(i.Low), write(i.High))
}

// chance is a p value for people.
func chance(p *float64) string {
	switch {
	case p == nil:
		return noValue
	case *p < 0.0001:
		return "< 0.0001"
	}
	return fmt.Sprintf("%.4f", *p)
}

// Report is what an experiment has found so far.
type Report struct {
	Experiment string     `json:"experiment"`
	Question   string     `json:"question,omitempty"`
	Axis       string     `json:"axis"`
	Trials     []row      `json:"trials"`
	Arms       []summary  `json:"arms"`
	Contrasts  []Contrast `json:"contrasts"`

	file *File
}

// row is a trial in a report.
type row struct {
	Run      string             `json:"run_id"`
	Arm      string             `json:"arm"`
	Seed     uint64             `json:"seed"`
	State    string             `json:"state"`
	Steps    int                `json:"steps"`
	Planned  int                `json:"steps_planned"`
	Outcomes map[string]float64 `json:"outcomes"`
	Cost     Cost               `json:"cost"`
}

// Report reports what trials have found.
func (f *File) Report(trials []Observed) Report {
	out := Report{Experiment: f.Name, Question: f.Question, Axis: f.Budget.Axis, Arms: f.summarise(trials),
		Contrasts: f.compare(trials), file: f}
	for _, t := range trials {
		row := row{Run: t.Run, Arm: t.Arm, Seed: t.Seed, State: cmp.Or(t.State, stateNew),
			Planned: t.Resolved.Recipe.Steps, Outcomes: map[string]float64{}}
		if t.Result != nil {
			row.Steps, row.Cost = t.Result.Steps, t.Result.Cost
			for _, o := range f.Outcomes {
				if v, ok := f.value(t.Result, o, f.Budget.Amount); ok {
					row.Outcomes[o.Name] = v
				}
			}
		}
		out.Trials = append(out.Trials, row)
	}
	return out
}

// Table is a part of a report for people.
type Table struct {
	Title   string
	Columns []string
	Rows    [][]string
}

// Tables are the trials, the arms, and the contrasts if there are any.
func (r Report) Tables() []Table {
	trials := Table{Title: "Trials", Columns: []string{"trial", "arm", "seed", "steps", "state"}}
	for _, o := range r.file.Outcomes {
		trials.Columns = append(trials.Columns, o.Name)
	}
	trials.Columns = append(trials.Columns, "RL s", "tokens", "calls", "updates")
	for _, t := range r.Trials {
		row := []string{t.Run, t.Arm, fmt.Sprint(t.Seed), fmt.Sprintf("%d/%d", t.Steps, t.Planned), t.State}
		for _, o := range r.file.Outcomes {
			text := noValue
			if v, ok := t.Outcomes[o.Name]; ok {
				text = o.text(v)
			}
			row = append(row, text)
		}
		spent := []string{noValue, noValue, noValue, noValue}
		if c := t.Cost; c != (Cost{}) {
			spent = []string{fmt.Sprintf("%.0f", c.RLSeconds), fmt.Sprint(c.Tokens), fmt.Sprint(c.Calls),
				fmt.Sprint(c.Updates)}
		}
		trials.Rows = append(trials.Rows, slices.Concat(row, spent))
	}
	arms := Table{Title: "Arms", Columns: []string{"arm", "outcome", "trials", "mean", "95% (t)", "95% (bootstrap)"}}
	for _, s := range r.Arms {
		o, _ := r.file.outcome(s.Outcome)
		arms.Rows = append(arms.Rows, slices.Concat([]string{s.Arm, s.Outcome}, s.cells(o.text)))
	}
	contrasts := Table{Title: "Differences", Columns: []string{"difference", "outcome", "seeds", "mean", "95% (t)",
		"95% (bootstrap)", "p (Holm)", "seeds needed", "verdict"}}
	for _, c := range r.Contrasts {
		o, _ := r.file.outcome(c.Outcome)
		needed := noValue
		if c.SeedsNeeded != nil {
			needed = fmt.Sprint(*c.SeedsNeeded)
		}
		contrasts.Rows = append(contrasts.Rows, slices.Concat([]string{c.Name(), c.Outcome}, c.cells(o.Difference),
			[]string{chance(c.Corrected), needed, c.Verdict()}))
	}
	if len(r.Contrasts) == 0 {
		return []Table{trials, arms}
	}
	return []Table{trials, arms, contrasts}
}

// cells are the number of values, their mean and its intervals.
func (s sample) cells(write func(float64) string) []string {
	mean := noValue
	if s.N > 0 {
		mean = write(s.Mean)
	}
	return []string{fmt.Sprint(s.N), mean, s.T.Bounds(write), s.Bootstrap.Bounds(write)}
}

// Write prints the report.
func (r Report) Write(p *terminal.Printer) {
	for i, t := range r.Tables() {
		if i > 0 {
			p.Line("")
		}
		for _, row := range slices.Concat([][]string{t.Columns}, t.Rows) {
			cells := make([]any, len(row))
			for i, c := range row {
				cells[i] = c
			}
			p.Row(cells...)
		}
	}
}
