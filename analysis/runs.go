package analysis

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/ropewalk/ropewalk/analysis/status"
	"github.com/ropewalk/ropewalk/internal/evaluation"
	"github.com/ropewalk/ropewalk/internal/rescue"
	"github.com/ropewalk/ropewalk/schema"
)

// Run is one run of the catalogue and its progress.
type Run struct {
	schema.CatalogueEntry // Steps is what the recipe asked for at first
	// Planned is the number of steps after the latest change by `stop` or `set`; 0 if nothing is trained.
	Planned   int `json:"steps_planned"`
	StepsDone int `json:"steps_done"`
	// Status is the name of the run's state; package status says which there are. FailureKind and Reason say what has
	// failed, or who ended the run.
	Status      string `json:"status"`
	FailureKind string `json:"failure_kind,omitempty"`
	Reason      string `json:"reason,omitempty"`
	// Before and After are the sampled success on held-out problems at the warm start and at the end, from the rows of
	// the evaluations.
	Before *float64 `json:"success_before"`
	After  *float64 `json:"success_after"`
	// Evaluating is how far an open evaluation of its own is; nil of other runs.
	Evaluating *Evaluating `json:"evaluating,omitempty"`
}

// Evaluating is the progress of an evaluation of its own.
type Evaluating struct {
	Measured int `json:"measured"` // problems, of the shards that are committed
	Asked    int `json:"asked"`    // problems that the recipe asks for: fewer are measured where there are fewer
}

// State is the run's status.
func (r Run) State() status.Status {
	return status.Status{State: status.State(r.Status), Kind: r.FailureKind, Reason: r.Reason}
}

// Measures reports whether the run is an evaluation of its own, which trains nothing.
func (r Run) Measures() bool {
	return r.Evaluating != nil || r.StepsDone == 0 && r.Before == nil && r.After != nil
}

// Progress is the finished part of the planned steps, as 3/5, or of the problems of an open evaluation; a dash where
// none are planned.
func (r Run) Progress() string {
	switch e := r.Evaluating; {
	case e != nil && e.Asked > 0:
		return fmt.Sprintf("%d/%d problems", e.Measured, e.Asked)
	case r.Measures():
		return noData
	}
	return fmt.Sprintf("%d/%d", r.StepsDone, max(r.Planned, r.StepsDone))
}

// SuccessWords is the success on held-out problems before and after training, or of the policy that is evaluated.
func (r Run) SuccessWords() string {
	switch {
	case r.Before == nil && r.After == nil:
		return noData
	case r.Before == nil:
		return fmt.Sprintf("%14.1f%%", 100**r.After)
	case r.After == nil:
		return fmt.Sprintf("%5.1f%% → …", 100**r.Before)
	}
	return fmt.Sprintf("%5.1f%% → %5.1f%%", 100**r.Before, 100**r.After)
}

// Runs lists the catalogue and the queued runs, which are not in it yet, newest first.
func (r *Record) Runs(ctx context.Context) ([]Run, error) {
	queued, err := r.queued(ctx) // first: a run that is prepared in the meantime is then in the catalogue
	if err != nil {
		return nil, err
	}
	names, err := r.names(ctx, schema.CataloguePrefix)
	if err != nil {
		return nil, err
	}
	runs := make([]Run, len(names))
	if err := rescue.Each(ctx, fetches, len(names), func(ctx context.Context, i int) (err error) {
		runs[i], err = r.Run(ctx, names[i])
		return err
	}); err != nil {
		return nil, err
	}
	for _, q := range queued {
		if !slices.Contains(names, q.Run) {
			runs = append(runs, r.Queued(q))
		}
	}
	slices.SortFunc(runs, func(a, b Run) int {
		return cmp.Or(cmp.Compare(b.Created, a.Created), cmp.Compare(a.Run, b.Run))
	})
	return runs, nil
}

// evaluateRun is the workflow of an evaluation of its own.
const evaluateRun = "EvaluateRun"

// Queued is the run that a request asks for.
func (r *Record) Queued(q schema.Request) Run {
	run := Run{CatalogueEntry: q.CatalogueEntry, Planned: q.Steps}
	if q.Workflow == evaluateRun {
		run.Evaluating = &Evaluating{}
	}
	run.settle(r.facts(run, status.Facts{Queued: true}))
	return run
}

// queued reads the requests of runs that have not started.
func (r *Record) queued(ctx context.Context) ([]schema.Request, error) {
	names, err := r.names(ctx, schema.RequestsPrefix)
	if err != nil {
		return nil, err
	}
	var out []schema.Request
	for _, name := range names {
		q, found, err := r.Request(ctx, name)
		if err != nil {
			return nil, err
		}
		if found {
			out = append(out, q)
		}
	}
	return out, nil
}

// Request reads the request under a run's name, if the run has not committed anything yet.
func (r *Record) Request(ctx context.Context, run string) (q schema.Request, found bool, err error) {
	return readJSON[schema.Request](ctx, r, schema.RequestKey(run))
}

// Run reads one entry of the catalogue and the run's progress.
func (r *Record) Run(ctx context.Context, name string) (Run, error) {
	run, found, err := readJSON[Run](ctx, r, schema.CatalogueKey(name))
	if err == nil && !found {
		err = r.NoRun(ctx, name, fmt.Sprintf("%s has no entry in the catalogue of %s", name, r.objects))
	}
	if err != nil {
		return Run{}, err
	}
	return run, r.progress(ctx, &run)
}

// progress fills in a run's progress and status from the record.
func (r *Record) progress(ctx context.Context, run *Run) (err error) {
	if run.StepsDone, err = r.stepsDone(ctx, run.Run); err != nil {
		return err
	}
	if run.Planned, err = r.planned(ctx, run.CatalogueEntry); err != nil {
		return err
	}
	facts := status.Facts{Finished: run.StepsDone > 0}
	if run.Planned > 0 {
		if run.Before, err = r.before(ctx, run.Run); err != nil {
			return err
		}
		last := schema.At(run.Run, run.Planned, schema.StageEvaluate)
		if run.After, facts.Finished, err = r.success(ctx, last); err != nil {
			return err
		}
	}
	if run.Planned > 0 && !facts.Finished && run.StepsDone == 0 {
		if run.Evaluating, err = r.evaluating(ctx, run.Run, run.Planned); err != nil {
			return err
		}
	}
	if facts.Note, err = r.stateNote(ctx, run.Run); err != nil {
		return err
	}
	run.settle(r.facts(*run, facts))
	return nil
}

// evaluating reads how far an evaluation of its own is from the shards that it has committed; nil if the run is none.
func (r *Record) evaluating(ctx context.Context, run string, step int) (*Evaluating, error) {
	prepare, _, found, err := r.writer.Lookup(ctx, schema.AtInit(run, schema.StagePrepare))
	if err != nil || !found || prepare.Note[schema.NoteEvaluates] == "" {
		return nil, err
	}
	var recipe struct {
		Evaluation struct {
			Problems int  `json:"problems"`
			Samples  int  `json:"samples"`
			Greedy   bool `json:"greedy"`
		} `json:"evaluation"`
	}
	if err := r.recipe(ctx, prepare, &recipe); err != nil {
		return nil, err
	}
	of := recipe.Evaluation
	places, err := r.places(ctx, fmt.Sprintf("%sstep=%d/%s/shard=", schema.ManifestsPrefix(run), step,
		schema.StageEvaluate))
	if err != nil {
		return nil, err
	}
	shards, _, err := r.lookups(ctx, places)
	episodes := 0
	for _, m := range shards {
		episodes += int(m.Stats[schema.StatRows] + m.Stats[schema.StatExcluded])
	}
	ofProblem := of.Samples
	if of.Greedy {
		ofProblem++
	}
	return &Evaluating{Measured: episodes / max(ofProblem, 1), Asked: of.Problems}, err
}

// settle derives the run's status from the facts.
func (r *Run) settle(f status.Facts) {
	s := status.Of(f)
	r.Status, r.FailureKind, r.Reason = string(s.State), s.Kind, s.Reason
}

// stepsDone counts the steps with a head.
func (r *Record) stepsDone(ctx context.Context, run string) (done int, err error) {
	heads, err := r.objects.List(ctx, schema.HeadsPrefix(run))
	if err != nil {
		return 0, fmt.Errorf("list heads of run %s: %w", run, err)
	}
	for _, o := range heads {
		if _, step, err := schema.ParseHeadKey(o.Key); err == nil && step != schema.InitStep {
			done++
		}
	}
	return done, nil
}

// success returns the success rate of an evaluation, computed from its rows, and whether the evaluation is committed.
// The rate is nil if it is not, or has no sampled rows.
func (r *Record) success(ctx context.Context, place schema.Place) (rate *float64, committed bool, err error) {
	m, _, found, err := r.writer.Lookup(ctx, place)
	if err != nil || !found {
		return nil, false, err
	}
	rows, err := rowsIn[schema.EvaluationRow](ctx, r, m)
	if err != nil {
		return nil, false, err
	}
	if slices.ContainsFunc(rows, func(e schema.EvaluationRow) bool { return !e.Greedy }) {
		of := evaluation.Success(evaluation.Sampled(rows))
		rate = &of
	}
	return rate, true, nil
}
