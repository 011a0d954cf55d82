package record

import (
	"context"
	"fmt"

	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/schema"
)

// PreparedRun returns the manifest of a run's recipe. If the run has none, the error is a bad input of the caller.
func (r Records) PreparedRun(ctx context.Context, run string) (schema.Ref, error) {
	_, ref, found, err := r.Record.Lookup(ctx, schema.AtInit(run, schema.StagePrepare))
	if err == nil && !found {
		err = badinput.Errorf("run_id: no such run in the record: %s has committed nothing in %s; `ropewalk runs` "+
			"lists them", run, r.Store)
	}
	return ref, err
}

// Shared returns what the run has committed that a fork shares a place with; found is false if there is none.
func (r Records) Shared(ctx context.Context, place schema.Place) (m schema.Manifest, ref schema.Ref, found bool,
	err error) {
	prepare, _, _, err := r.Record.Lookup(ctx, schema.AtInit(place.Run, schema.StagePrepare))
	if err != nil {
		return m, ref, false, err
	}
	fork, err := prepare.Fork()
	if err != nil || !fork.Shares(place) {
		return m, ref, false, err
	}
	place.Run = fork.Run
	if m, ref, found, err = r.Record.Lookup(ctx, place); found || err != nil {
		return m, ref, found, err
	}
	return r.Shared(ctx, place)
}

// StepPlaces lists the places of a step's manifests.
func (r Records) StepPlaces(ctx context.Context, run string, step int) ([]schema.Place, error) {
	listed, err := r.Store.List(ctx, fmt.Sprintf("%sstep=%d/", schema.ManifestsPrefix(run), step))
	if err != nil {
		return nil, fmt.Errorf("list manifests of run %s step %d: %w", run, step, err)
	}
	var places []schema.Place
	for _, o := range listed {
		p, err := schema.ParseManifestKey(o.Key)
		if err != nil {
			return nil, fmt.Errorf("%w: list manifests of run %s step %d: %w", commit.ErrDamaged, run, step, err)
		}
		places = append(places, p)
	}
	return places, nil
}

// FreeGeneration is one above every generation of a step, including those of its replays.
func (r Records) FreeGeneration(ctx context.Context, run string, step int) (int, error) {
	places, err := r.StepPlaces(ctx, run, step)
	if err != nil {
		return 0, err
	}
	free := 1
	for _, p := range places {
		free = max(free, p.Gen+1)
	}
	return free, nil
}
