package replay

import (
	"context"
	"strconv"

	"github.com/ropewalk/ropewalk/activities/record"
	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/schema"
)

// stepStages finds what a step has committed. If the run or step has committed nothing, the error is a bad input of
// the caller.
func stepStages(ctx context.Context, r record.Records, run string, step int) (*Made, error) {
	recipe, err := r.PreparedRun(ctx, run)
	if err != nil {
		return nil, err
	}
	places, err := r.StepPlaces(ctx, run, step)
	if err != nil {
		return nil, err
	}
	made := NewMade(run, step, recipe, places)
	head, _, found, err := r.Record.Head(ctx, run, strconv.Itoa(step))
	if err != nil {
		return nil, err
	}
	if found {
		made.Refs = head.Stages
		return made, nil
	}
	if made.Refs, err = present(ctx, r, made.Latest(places)); err != nil {
		return nil, err
	}
	if len(made.Refs) == 0 {
		return nil, badinput.Errorf("step: step %d of run %s has committed nothing; `ropewalk show %s` lists the "+
			"steps that are done", step, run, run)
	}
	return made, nil
}

// present returns the manifests that places name, in order, without the missing ones.
func present(ctx context.Context, r record.Records, places map[string][]schema.Place) (map[string][]schema.Ref, error) {
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
