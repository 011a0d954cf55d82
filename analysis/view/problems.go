package view

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/analysis"
)

// homePages are the templates of the list of runs and of problems. They escape what the record holds.
var homePages = template.Must(template.ParseFS(assets, "assets/home.gohtml"))

// page answers a page: its template has a name, and gets the values that a function reads.
func page[T any](name string, of func(context.Context, url.Values) (T, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), longest)
		defer cancel()
		values, err := of(ctx, r.URL.Query())
		var out bytes.Buffer
		if err == nil {
			err = homePages.ExecuteTemplate(&out, name, values)
		}
		if err != nil {
			refuse(w, r, err)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write(out.Bytes()) // the browser has gone otherwise
	}
}

// listedRun is a run as the lists of runs show it.
type listedRun struct {
	analysis.Run
	Workflow string // its address in Temporal's UI; "" if there is none
	Chosen   bool
}

// runs lists the runs, newest first.
func (h *Home) runs(ctx context.Context, q url.Values) ([]listedRun, error) {
	record := h.options.Record
	if h.options.Observe != nil {
		observed, err := h.options.Observe(ctx)
		if err != nil {
			return nil, err
		}
		record = record.WithServer(observed)
	}
	all, err := record.Runs(ctx)
	out := make([]listedRun, len(all))
	for i, r := range all {
		out[i] = listedRun{r, h.options.workflow(r.Run), slices.Contains(q["run"], r.Run)}
	}
	return out, err
}

// solved is a page about problems: how often each was solved in each run, or one of them in each step.
type solved struct {
	All           []listedRun // to choose from
	Runs          []string
	Problem, Text string // of one problem; "" on the page of all
	Rows          []*solvedRow
	More          int // problems that are left out
}

// solvedRow is one problem, or one step or evaluation.
type solvedRow struct {
	ID, Text string
	Level    any
	Step     int64
	Held     bool
	Cells    []solvedCell // of each run
}

// solvedCell counts the attempts of a run.
type solvedCell struct {
	Solved, N int64
	Link      string // to these attempts
}

// Words are a cell's text: the solve rate, and what it is of.
func (c solvedCell) Words() string {
	if c.N == 0 {
		return "–"
	}
	return fmt.Sprintf("%.0f%% (%d of %d)", 100*float64(c.Solved)/float64(c.N), c.Solved, c.N)
}

// rate is the share of all attempts that solved.
func (r *solvedRow) rate() float64 {
	var solved, n int64
	for _, c := range r.Cells {
		solved, n = solved+c.Solved, n+c.N
	}
	return float64(solved) / float64(max(1, n))
}

// Questions to the index of a run: what a row is of, and how often its attempts solved. Attempts that broke do not
// count.
const (
	byProblem = "select problem_id, any_value(problem), any_value(level), 0::bigint, false, " + attempts +
		" where problem_id is not null group by all"
	byStep = "select problem_id, any_value(problem), any_value(level), step::bigint, part = '" + partEvaluation +
		"', " + attempts + " where problem_id = ? group by problem_id, step, part"
	attempts = "count(*) filter (success), count(success) from " + indexTable
)

// mostProblems bounds the rows of the page of all problems.
const mostProblems = 500

// problems answers how often the problems of some runs were solved: the hardest first, or one problem step by step.
func (h *Home) problems(ctx context.Context, q url.Values) (out solved, err error) {
	if out.Runs, err = runsOf(q); err != nil {
		return out, err
	}
	if out.All, err = h.runs(ctx, q); err != nil {
		return out, err
	}
	out.Problem = q.Get("problem")
	query, args := byProblem, []any{}
	if out.Problem != "" {
		query, args = byStep, []any{out.Problem}
	}
	rows := map[string]*solvedRow{}
	for i, run := range out.Runs {
		v, err := h.Viewer(ctx, run)
		if err != nil {
			return out, err
		}
		if err := v.filled(ctx); err != nil {
			return out, err
		}
		found, err := v.index.Ask(ctx, query, args...)
		if err != nil {
			return out, err
		}
		for _, row := range found.Rows {
			out.add(rows, i, row)
		}
	}
	for _, r := range rows {
		out.Rows = append(out.Rows, r)
	}
	out.sort()
	return out, nil
}

// add puts what a run answers of a row into the page.
func (s *solved) add(rows map[string]*solvedRow, run int, row []any) {
	r := &solvedRow{ID: fmt.Sprint(row[0]), Text: fmt.Sprint(row[1]), Level: row[2]}
	r.Step, _ = row[3].(int64)
	r.Held, _ = row[4].(bool)
	key := fmt.Sprint(r.ID, r.Step, r.Held)
	if have := rows[key]; have != nil {
		r = have
	} else {
		rows[key], r.Cells = r, make([]solvedCell, len(s.Runs))
	}
	c := &r.Cells[run]
	c.Solved, _ = row[5].(int64)
	c.N, _ = row[6].(int64)
	link := url.Values{"where": {"problem_id = '" + strings.ReplaceAll(r.ID, "'", "''") + "'"}}
	if s.Problem != "" {
		link.Set("step", fmt.Sprint(r.Step))
		s.Text = r.Text
	}
	if r.Held {
		link.Set("part", partEvaluation)
	}
	c.Link = "/" + s.Runs[run] + "/?" + link.Encode()
}

// sort orders the rows: steps as they ran, and problems from the hardest on, of which it keeps the first.
func (s *solved) sort() {
	slices.SortFunc(s.Rows, func(a, b *solvedRow) int {
		if s.Problem != "" {
			return cmp.Or(cmp.Compare(a.Step, b.Step), strings.Compare(fmt.Sprint(a.Held), fmt.Sprint(b.Held)))
		}
		return cmp.Or(cmp.Compare(a.rate(), b.rate()), strings.Compare(a.ID, b.ID))
	})
	s.More = max(0, len(s.Rows)-mostProblems)
	s.Rows = s.Rows[:len(s.Rows)-s.More]
}

// Name is what a row is of, on the page of one problem.
func (r *solvedRow) Name() string {
	switch {
	case r.Held && r.Step == 0:
		return "evaluation before step 1"
	case r.Held:
		return fmt.Sprintf("evaluation after step %d", r.Step)
	}
	return fmt.Sprintf("step %d", r.Step)
}

// Short is the beginning of a problem's text, or its id if it has none.
func (r *solvedRow) Short() string {
	const most = 100
	text := []rune(strings.Join(strings.Fields(r.Text), " "))
	if len(text) > most {
		return string(text[:most]) + "…"
	}
	return cmp.Or(string(text), r.ID)
}

// Link leads to the page of a row's problem.
func (s solved) Link(problem string) string {
	return "/problems?" + url.Values{"run": s.Runs, "problem": {problem}}.Encode()
}

// filled waits until the index holds every finished step.
func (v *Viewer) filled(ctx context.Context) error {
	for {
		state, changed := v.Changed()
		if state.Complete {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("run %s is being read, with %d steps to go: %w", v.name, state.Waiting, ctx.Err())
		case <-changed:
		}
	}
}
