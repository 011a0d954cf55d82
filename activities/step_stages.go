package activities

import (
	"context"
	"fmt"
	"strconv"

	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/internal/replaying"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/schema"
)

// stepStages finds what a step has committed. If the run or step has committed nothing, the error is a bad input of
// the caller.
func (r records) stepStages(ctx context.Context, run string, step int) (*replaying.Made, error) {
	recipe, err := r.preparedRun(ctx, run)
	if err != nil {
		return nil, err
	}
	places, err := r.stepPlaces(ctx, run, step)
	if err != nil {
		return nil, err
	}
	made := replaying.NewMade(run, step, recipe, places)
	head, _, found, err := r.Record.Head(ctx, run, strconv.Itoa(step))
	if err != nil {
		return nil, err
	}
	if found {
		made.Refs = head.Stages
		return made, nil
	}
	if made.Refs, err = r.present(ctx, made.Latest(places)); err != nil {
		return nil, err
	}
	if len(made.Refs) == 0 {
		return nil, refuse(api.FailBadInput,
			"step: step %d of run %s has committed nothing; `ropewalk show %s` lists the steps that are done",
			step, run, run)
	}
	return made, nil
}

// preparedRun returns the manifest of a run's recipe. If the run has none, the error is a bad input of the caller.
func (r records) preparedRun(ctx context.Context, run string) (schema.Ref, error) {
	_, ref, found, err := r.Record.Lookup(ctx, schema.AtInit(run, schema.StagePrepare))
	if err == nil && !found {
		err = refuse(api.FailBadInput,
			"run_id: no such run in the record: %s has committed nothing in %s; `ropewalk runs` lists them", run,
			r.Store)
	}
	return ref, err
}

// stepPlaces lists the places of a step's manifests.
func (r records) stepPlaces(ctx context.Context, run string, step int) ([]schema.Place, error) {
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

// present returns the manifests that places name, in order, without the missing ones.
func (r records) present(ctx context.Context, places map[string][]schema.Place) (map[string][]schema.Ref, error) {
	refs := map[string][]schema.Ref{}
	for stage, of := range places {
		for _, p := range of {
			_, ref, found, err := r.Record.Lookup(ctx, p)
			if err != nil {
				return nil, err
			}
			if found {
				refs[stage] = append(refs[stage], ref)
			}
		}
	}
	return refs, nil
}

// freeGeneration is one above every generation of a step, including those of its replays.
func (r records) freeGeneration(ctx context.Context, run string, step int) (int, error) {
	places, err := r.stepPlaces(ctx, run, step)
	if err != nil {
		return 0, err
	}
	free := 1
	for _, p := range places {
		free = max(free, p.Gen+1)
	}
	return free, nil
}
