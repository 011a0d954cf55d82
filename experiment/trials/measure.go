// Package trials reads the trials of experiments from the record by SQL, judges them by the stop rule, and shows what
// an experiment has found as one page.
//
//	Reader.Observe: files of results, else record → Measure → Observed …
//	Observed … → NewPage → WriteHTML
package trials

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/analysis/metrics"
	"github.com/ropewalk/ropewalk/analysis/sql"
	"github.com/ropewalk/ropewalk/analysis/status"
	"github.com/ropewalk/ropewalk/experiment"
	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/internal/rescue"
)

// sessions is how many trials are read at once.
const sessions = 2

// Reader reads trials.
type Reader struct {
	Record *analysis.Record
	// Folder has files of results; "" if there is none.
	Folder string
}

// Observe reads how trials are, and the results of those that have committed a step: from their files, else from the
// record.
func (r Reader) Observe(ctx context.Context, outcomes []experiment.Outcome, trials []experiment.Trial,
) ([]experiment.Observed, error) {
	out := make([]experiment.Observed, len(trials))
	err := rescue.Each(ctx, sessions, len(trials), func(ctx context.Context, i int) (err error) {
		out[i], err = r.observe(ctx, outcomes, trials[i])
		return err
	})
	return out, err
}

func (r Reader) observe(ctx context.Context, outcomes []experiment.Outcome, t experiment.Trial,
) (out experiment.Observed, err error) {
	out.Trial = t
	if r.Folder != "" {
		if out.Result, err = experiment.ReadResult(r.Folder, t); err != nil {
			return out, err
		}
	}
	if out.Result != nil && out.Result.Done {
		out.State = string(status.Done)
		if out.Result.Has(outcomes) {
			return out, nil
		}
	}
	run, err := r.Record.Run(ctx, t.Run)
	if errors.Is(err, analysis.ErrNoRun) {
		return out, nil
	}
	if err != nil {
		return out, err
	}
	out.State = run.Status
	out.Result, err = r.Measure(ctx, outcomes, run)
	return out, err
}

// Measure reads a run's result from the record. It is nil if the run has committed neither a step nor an evaluation.
func (r Reader) Measure(ctx context.Context, outcomes []experiment.Outcome, run analysis.Run,
) (*experiment.Result, error) {
	view, err := r.Record.Visible(ctx, run.Run)
	if errors.Is(err, analysis.ErrNoRun) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	origin, err := view.Origin(ctx)
	if err != nil {
		return nil, err
	}
	out := &experiment.Result{Run: run.Run, Recipe: run.Recipe, Digest: origin.Config, Seed: run.Seed,
		Steps: run.StepsDone, Planned: run.Planned, Done: run.State().State == status.Done}
	for _, p := range origin.Programs {
		out.Programs = append(out.Programs, p.Digest)
	}
	if out.Curves, out.Spent, err = r.curves(ctx, run.Run, outcomes); err != nil {
		return nil, err
	}
	return out, r.cost(ctx, out)
}

// cost adds what the run has taken.
func (r Reader) cost(ctx context.Context, out *experiment.Result) error {
	figures, err := r.Record.Figures(ctx, out.Run)
	if err != nil {
		return err
	}
	used, err := r.Record.Cost(ctx, out.Run)
	if err != nil {
		return err
	}
	out.Cost = experiment.Cost{RLSeconds: figures.RLSeconds, WarmStartSeconds: figures.WarmStartSeconds,
		EvaluationSeconds: figures.EvalSeconds, Tokens: figures.Tokens, Bytes: used.Bytes,
		Calls:   int64(out.End(experiment.AxisCalls)),
		Updates: int64(out.End(experiment.AxisUpdates))}
	return nil
}

// curves asks for the curves of the outcomes, and for what each step has spent.
func (r Reader) curves(ctx context.Context, run string, outcomes []experiment.Outcome,
) (curves, spent map[string]experiment.Curve, err error) {
	asked := map[string]string{} // queries by curve
	for _, o := range outcomes {
		query := o.SQL
		if o.Metric != "" {
			query = metrics.Query(o.Metric)
		}
		asked[o.ID()] = "select coalesce(step, 0)::int, value::double from (" + query + ") as asked where " +
			"isfinite(value::double) order by 1"
	}
	var queries []string
	for _, id := range slices.Sorted(maps.Keys(asked)) {
		queries = append(queries, asked[id])
	}
	for _, a := range experiment.Axes {
		queries = append(queries, a.SQL)
	}
	session, err := sql.Open(ctx, r.Record, []string{run}, queries...)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, session.Close()) }()
	curves, spent = map[string]experiment.Curve{}, map[string]experiment.Curve{}
	for _, o := range outcomes {
		c, err := ask(ctx, session, asked[o.ID()])
		if errors.Is(err, sql.ErrQuery) {
			return nil, nil, badinput.Errorf("outcome %s: %w", o.Name, err)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("outcome %s of run %s: %w", o.Name, run, err)
		}
		curves[o.ID()] = c
	}
	for _, a := range experiment.Axes {
		if a.SQL == "" {
			continue
		}
		c, err := ask(ctx, session, "select step, value::double from ("+a.SQL+") as asked where step > 0 and value is "+
			"not null order by 1")
		if err != nil {
			return nil, nil, fmt.Errorf("what run %s has spent: %w", run, err)
		}
		for i := range c[min(1, len(c)):] {
			c[i+1].Y += c[i].Y
		}
		spent[a.Name] = c
	}
	return curves, spent, nil
}

// ask asks for the points of a curve.
func ask(ctx context.Context, session *sql.Session, query string) (experiment.Curve, error) {
	answer, err := session.Ask(ctx, query)
	if err != nil {
		return nil, err
	}
	out := experiment.Curve{}
	for _, row := range answer.Rows {
		var p experiment.XY
		for i, to := range []*float64{&p.X, &p.Y} {
			if *to, err = strconv.ParseFloat(fmt.Sprint(row[i]), 64); err != nil {
				return nil, err
			}
		}
		out = append(out, p)
	}
	return out, nil
}
