package activities

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/ropewalk/ropewalk/activities/wire"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/schema"
)

// AmendRecipe commits a live run's recipe with some settings changed. Whatever is made under it
// names the amendment among its inputs, so the lineage tells which steps had which settings.
type AmendRecipe struct{ *Deps }

// Notes of an amendment's manifest.
const (
	noteFromStep = "from_step"
	noteTakenAs  = "generation"
	noteChanges  = "set"
)

// Execute validates the whole changed recipe; a refused change leaves the run as it is.
func (a AmendRecipe) Execute(ctx context.Context, in wire.AmendInput) (wire.Amended, error) {
	out := wire.Amended{}
	timing := wire.Timing{Stage: schema.StageAmend, Shard: -1, Turn: -1}
	err := tracked(ctx, &timing, func(ctx context.Context, _ *progress) error { return a.amend(ctx, in, &out) })
	out.Timing = timing
	return out, err
}

func (a AmendRecipe) amend(ctx context.Context, in wire.AmendInput, out *wire.Amended) error {
	before, err := a.config(ctx, in.Config)
	if err != nil {
		return err
	}
	text, err := before.recipe.Canonical()
	if err != nil {
		return err
	}
	resolved, err := recipes.Resolve(before.recipe.Name, string(text), in.Set, nil, nil)
	if err != nil {
		return err
	}
	if err := built(&resolved.Recipe); err != nil {
		return err
	}
	gen := 0
	if in.Anew {
		if gen, err = a.freeGeneration(ctx, in.Run, in.From); err != nil {
			return err
		}
	}
	place := amendmentPlace(in.Run, in.Number)
	m := schema.NewManifest(place, a.Code, resolved.Digest)
	m.Inputs = []schema.Ref{in.Config}
	m.Note = map[string]string{noteFromStep: strconv.Itoa(in.From), noteTakenAs: strconv.Itoa(gen), noteChanges: strings.Join(in.Set, " ")}
	shard, err := a.Record.Shard(ctx, place, schema.Documents, resolved.JSON, 1)
	if err != nil {
		return err
	}
	m.Shards = append(m.Shards, shard)
	committed, ref, _, err := a.Record.Commit(ctx, m)
	if err != nil {
		return err
	}
	if committed.Config != m.Config || committed.Note[noteFromStep] != m.Note[noteFromStep] {
		return fmt.Errorf("amendment %d of run %s was made by somebody else at the same time; try again", in.Number, in.Run)
	}
	out.Manifest = ref
	if gen, err = strconv.Atoi(committed.Note[noteTakenAs]); err != nil { // an earlier attempt's stands
		return refuse(wire.FailCorrupt, "%s: note %s: want a generation, got %q", ref.Key, noteTakenAs, committed.Note[noteTakenAs])
	}
	out.Amendment = wire.Amendment{Manifest: ref, Plan: plan(resolved.Recipe), From: in.From, Gen: gen}
	return nil
}

// freeGeneration is one above all that a step has, those of its replays included.
func (d *Deps) freeGeneration(ctx context.Context, run string, step int) (int, error) {
	places, err := d.stepPlaces(ctx, run, step)
	if err != nil {
		return 0, err
	}
	free := 1
	for _, p := range places {
		free = max(free, p.Gen+1)
	}
	return free, nil
}

// amendmentPlace is where a run's n-th amendment stands.
func amendmentPlace(run string, n int) schema.Place {
	return schema.AtInit(run, schema.StageAmend).WithTry(n)
}

// amendments returns what a run has committed of them, in the order made.
func (d *Deps) amendments(ctx context.Context, run string) ([]wire.Amendment, error) {
	var all []wire.Amendment
	for {
		m, ref, found, err := d.Record.Lookup(ctx, amendmentPlace(run, len(all)))
		if err != nil || !found {
			return all, err
		}
		c, err := d.config(ctx, ref)
		if err != nil {
			return nil, err
		}
		from, err := strconv.Atoi(m.Note[noteFromStep])
		if err != nil {
			return nil, refuse(wire.FailCorrupt, "%s: note %s: want a step, got %q", ref.Key, noteFromStep, m.Note[noteFromStep])
		}
		gen, err := strconv.Atoi(m.Note[noteTakenAs])
		if err != nil {
			return nil, refuse(wire.FailCorrupt, "%s: note %s: want a generation, got %q", ref.Key, noteTakenAs, m.Note[noteTakenAs])
		}
		all = append(all, wire.Amendment{Manifest: ref, Plan: plan(c.recipe), From: from, Gen: gen})
	}
}
