package replay

import (
	"cmp"
	"context"
	"slices"
	"strconv"

	"github.com/ropewalk/ropewalk/activities/record"
	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/schema"
)

// Made are the stage manifests of a step: those that its head names or, if it has no head yet, the latest of each
// stage that the run itself has committed.
type Made struct {
	Run  string
	Step int
	// Owner is the run that has made the step: of a step that a fork shares, another one.
	Owner string
	// Recipe is the manifest of the run's recipe.
	Recipe schema.Ref
	// Refs holds the stage manifests by stage; rollout and sandbox have one for each turn, in order.
	Refs map[string][]schema.Ref
	// Claims are the replays of the step, by generation, and Next is the first generation, from 1 on, that nothing of
	// the step uses.
	Claims []schema.Place
	Next   int
}

// NewMade finds the claims and the next generation among the places of a step's manifests. It leaves Refs empty.
func NewMade(run string, step int, recipe schema.Ref, places []schema.Place) *Made {
	m := &Made{Run: run, Step: step, Owner: run, Recipe: recipe, Next: 1}
	for _, p := range byGeneration(places) {
		m.Next = max(m.Next, p.Gen+1)
		if p.Stage == schema.StageReplay {
			m.Claims = append(m.Claims, p)
		}
	}
	return m
}

// Latest returns, for each stage, the places of the stage manifests of the last generation that no replay has claimed.
func (m *Made) Latest(places []schema.Place) map[string][]schema.Place {
	replay := map[int]bool{}
	for _, c := range m.Claims {
		replay[c.Gen] = true
	}
	last := map[string][]schema.Place{}
	for _, p := range byGeneration(places) {
		if replay[p.Gen] || p.Shard >= 0 {
			continue
		}
		if before := last[p.Stage]; len(before) > 0 && before[0].Gen != p.Gen {
			last[p.Stage] = nil
		}
		last[p.Stage] = append(last[p.Stage], p)
	}
	return last
}

// byGeneration sorts places by generation, then turn.
func byGeneration(places []schema.Place) []schema.Place {
	out := slices.Clone(places)
	slices.SortStableFunc(out, func(a, b schema.Place) int {
		return cmp.Or(cmp.Compare(a.Gen, b.Gen), cmp.Compare(a.Turn, b.Turn))
	})
	return out
}

// One returns the only manifest of a stage that another stage reads.
func (m *Made) One(stage, reader string) (schema.Ref, error) {
	refs, err := m.All(stage, reader)
	if err != nil {
		return schema.Ref{}, err
	}
	return refs[0], nil
}

// All returns the manifests of a stage that another stage reads. If the step has not reached that stage, the error is
// a badinput.Error.
func (m *Made) All(stage, reader string) ([]schema.Ref, error) {
	refs := m.Refs[stage]
	if len(refs) == 0 {
		return nil, badinput.Errorf("step: step %d of run %s has not committed %s, which %s reads; `ropewalk resume "+
			"%s` continues the step", m.Step, m.Run, stage, reader, m.Run)
	}
	return refs, nil
}

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
		made.Refs, made.Owner = head.Stages, head.Owner()
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
