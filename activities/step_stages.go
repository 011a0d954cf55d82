package activities

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/ropewalk/ropewalk/activities/wire"
	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/schema"
)

// stepStages are the stage manifests of a step: those that its head names or, where it has no head
// yet, the latest of each stage that the run itself has committed.
type stepStages struct {
	run    string
	step   int
	recipe schema.Ref              // the manifest of the run's recipe
	refs   map[string][]schema.Ref // by stage; rollout and sandbox have one for each turn, in order
	claims []schema.Place          // replays of the step, by generation
	next   int                     // the first generation, from 1 on, that nothing of the step has
}

// stepStages finds what a step has committed. A run or step without any is the caller's to mend.
func (d *Deps) stepStages(ctx context.Context, run string, step int) (*stepStages, error) {
	recipe, err := d.preparedRun(ctx, run)
	if err != nil {
		return nil, err
	}
	places, err := d.stepPlaces(ctx, run, step)
	if err != nil {
		return nil, err
	}
	s := &stepStages{run: run, step: step, recipe: recipe, next: 1}
	for _, p := range places {
		s.next = max(s.next, p.Gen+1)
		if p.Stage == wire.StageReplay {
			s.claims = append(s.claims, p)
		}
	}
	head, _, found, err := d.Record.Head(ctx, run, strconv.Itoa(step))
	if err != nil {
		return nil, err
	}
	if found {
		s.refs = head.Stages
		return s, nil
	}
	if s.refs, err = d.latest(ctx, places, s.claims); err != nil {
		return nil, err
	}
	if len(s.refs) == 0 {
		return nil, refuse(wire.FailBadInput, "step: step %d of run %s has committed nothing; `ropewalk show %s` lists the steps that are done", step, run, run)
	}
	return s, nil
}

// preparedRun returns the manifest of a run's recipe. A run without one is the caller's to mend.
func (d *Deps) preparedRun(ctx context.Context, run string) (schema.Ref, error) {
	_, ref, found, err := d.Record.Lookup(ctx, schema.AtInit(run, schema.StagePrepare))
	if err == nil && !found {
		err = refuse(wire.FailBadInput, "run_id: no such run in the record: %s has committed nothing in %s; `ropewalk runs` lists them", run, d.Store)
	}
	return ref, err
}

// stepPlaces lists a step's manifests by generation.
func (d *Deps) stepPlaces(ctx context.Context, run string, step int) ([]schema.Place, error) {
	listed, err := d.Store.List(ctx, fmt.Sprintf("%sstep=%d/", schema.ManifestsPrefix(run), step))
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
	slices.SortStableFunc(places, func(a, b schema.Place) int { return cmp.Or(cmp.Compare(a.Gen, b.Gen), cmp.Compare(a.Turn, b.Turn)) })
	return places, nil
}

// latest reads, of each stage, the stage manifests of the last generation that no replay has claimed.
func (d *Deps) latest(ctx context.Context, places, claims []schema.Place) (map[string][]schema.Ref, error) {
	replay := map[int]bool{}
	for _, c := range claims {
		replay[c.Gen] = true
	}
	last := map[string][]schema.Place{}
	for _, p := range places {
		if replay[p.Gen] || p.Shard >= 0 {
			continue
		}
		if before := last[p.Stage]; len(before) > 0 && before[0].Gen != p.Gen {
			last[p.Stage] = nil
		}
		last[p.Stage] = append(last[p.Stage], p)
	}
	refs := map[string][]schema.Ref{}
	for stage, places := range last {
		for _, p := range places {
			_, ref, found, err := d.Record.Lookup(ctx, p)
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

// one returns the only manifest of a stage that another reads.
func (s *stepStages) one(stage, reader string) (schema.Ref, error) {
	refs, err := s.all(stage, reader)
	if err != nil {
		return schema.Ref{}, err
	}
	return refs[0], nil
}

// all returns the manifests of a stage that another reads; a step that has not come so far is the
// caller's to mend.
func (s *stepStages) all(stage, reader string) ([]schema.Ref, error) {
	refs := s.refs[stage]
	if len(refs) == 0 {
		return nil, refuse(wire.FailBadInput, "step: step %d of run %s has not committed %s, which %s reads; `ropewalk resume %s` goes on with the step",
			s.step, s.run, stage, reader, s.run)
	}
	return refs, nil
}

// madeUnder returns the manifest of the recipe under which a manifest was made: its first input.
func madeUnder(m schema.Manifest) (schema.Ref, error) {
	if len(m.Inputs) == 0 {
		return schema.Ref{}, fmt.Errorf("%w: %s names no recipe among its inputs", commit.ErrDamaged, m.ManifestKey())
	}
	return m.Inputs[0], nil
}
