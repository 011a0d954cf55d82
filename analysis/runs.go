package analysis

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/activities/wire"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store"
)

// Run is one run of the catalogue and how far it has come.
type Run struct {
	schema.CatalogueEntry
	StepsDone int `json:"steps_done"`
	// Status is done when the last evaluation is committed (for an import: its head), else open:
	// the run goes on, waits for a worker or has failed.
	Status string `json:"status"`
	// Before and After are the sampled success on held-out problems at the warm start and at the end.
	Before *float64 `json:"success_before"`
	After  *float64 `json:"success_after"`
}

// The statuses of a run.
const (
	StatusDone = "done"
	StatusOpen = "open"
)

// Runs lists the catalogue, newest first.
func (r *Record) Runs(ctx context.Context) ([]Run, error) {
	listed, err := r.objects.List(ctx, schema.CataloguePrefix)
	if err != nil {
		return nil, fmt.Errorf("list runs: %w", err)
	}
	runs := make([]Run, len(listed))
	if err := each(ctx, fetches, len(listed), func(ctx context.Context, i int) error {
		name := strings.TrimSuffix(strings.TrimPrefix(listed[i].Key, schema.CataloguePrefix), ".json")
		var err error
		runs[i], err = r.Run(ctx, name)
		return err
	}); err != nil {
		return nil, err
	}
	slices.SortFunc(runs, func(a, b Run) int {
		return cmp.Or(cmp.Compare(b.Created, a.Created), cmp.Compare(a.Run, b.Run))
	})
	return runs, nil
}

// Run reads one entry of the catalogue and how far the run has come.
func (r *Record) Run(ctx context.Context, name string) (Run, error) {
	key := schema.CatalogueKey(name)
	data, err := r.objects.Get(ctx, key)
	if errors.Is(err, store.ErrNotFound) {
		return Run{}, fmt.Errorf("%w: %s has no entry in the catalogue", ErrNoRun, name)
	}
	if err != nil {
		return Run{}, fmt.Errorf("read the catalogue's entry of run %s: %w", name, err)
	}
	var run Run
	if err := json.Unmarshal(data, &run); err != nil {
		return Run{}, fmt.Errorf("read the catalogue's entry %s: %w", key, err)
	}
	run.Status = StatusOpen
	return run, r.progress(ctx, &run)
}

// progress fills in what the record says of a run.
func (r *Record) progress(ctx context.Context, run *Run) error {
	heads, err := r.objects.List(ctx, schema.HeadsPrefix(run.Run))
	if err != nil {
		return fmt.Errorf("list heads of run %s: %w", run.Run, err)
	}
	for _, o := range heads {
		if _, step, err := schema.ParseHeadKey(o.Key); err == nil && step != schema.InitStep {
			run.StepsDone++
		}
	}
	if run.Steps == 0 {
		if run.StepsDone > 0 {
			run.Status = StatusDone
		}
		return nil
	}
	if run.Before, err = r.success(ctx, schema.AtInit(run.Run, schema.StageEvaluate)); err != nil {
		return err
	}
	if run.After, err = r.success(ctx, schema.At(run.Run, run.Steps, schema.StageEvaluate)); err != nil {
		return err
	}
	if run.After != nil {
		run.Status = StatusDone
	}
	return nil
}

// success is the success rate that an evaluation committed; nil where there is none yet.
func (r *Record) success(ctx context.Context, place schema.Place) (*float64, error) {
	m, _, found, err := r.writer.Lookup(ctx, place)
	if err != nil || !found {
		return nil, err
	}
	rate := m.Stats["success"]
	return &rate, nil
}

// Evaluation is one committed evaluation.
type Evaluation struct {
	Step    int    `json:"step"` // NoStep for the warm start's
	Tag     string `json:"tag"`  // warm_start | step | final
	Summary wire.EvaluationSummary
}

// evaluations reads the run's evaluations, in the order of their steps.
func (v *Visible) evaluations(ctx context.Context, planned int) ([]Evaluation, error) {
	manifests, err := v.standing(ctx, func(stage string) bool { return stage == schema.StageEvaluate })
	if err != nil {
		return nil, err
	}
	out := make([]Evaluation, len(manifests))
	for i, m := range manifests {
		var result wire.Evaluated
		if err := json.Unmarshal([]byte(m.Note[schema.NoteResult]), &result); err != nil {
			return nil, fmt.Errorf("read the result in %s: %w", m.ManifestKey(), err)
		}
		out[i] = Evaluation{Step: placed(m), Tag: "step", Summary: result.Summary}
		switch out[i].Step {
		case NoStep:
			out[i].Tag = "warm_start"
		case planned:
			out[i].Tag = "final"
		}
	}
	return out, nil
}
