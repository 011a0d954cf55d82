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
	noteFrom = "from_step"
	noteGen  = "generation"
	noteSet  = "set"
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
	place := amendmentPlace(in.Run, in.Number)
	m := schema.NewManifest(place, a.Code, resolved.Digest)
	m.Inputs = []schema.Ref{in.Config}
	m.Note = map[string]string{noteFrom: strconv.Itoa(in.From), noteGen: strconv.Itoa(in.Gen), noteSet: strings.Join(in.Set, " ")}
	shard, err := a.Record.Shard(ctx, place, schema.Documents, resolved.JSON, 1)
	if err != nil {
		return err
	}
	m.Shards = append(m.Shards, shard)
	committed, ref, _, err := a.Record.Commit(ctx, m)
	if err != nil {
		return err
	}
	if committed.Config != m.Config || committed.Note[noteFrom] != m.Note[noteFrom] {
		return fmt.Errorf("amendment %d of run %s was made by somebody else at the same time; try again", in.Number, in.Run)
	}
	out.Manifest = ref
	out.Amendment = wire.Amendment{Manifest: ref, Plan: plan(resolved.Recipe), From: in.From, Gen: in.Gen}
	return nil
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
		from, err := strconv.Atoi(m.Note[noteFrom])
		if err != nil {
			return nil, refuse(wire.FailCorrupt, "%s: note %s: want a step, got %q", ref.Key, noteFrom, m.Note[noteFrom])
		}
		gen, err := strconv.Atoi(m.Note[noteGen])
		if err != nil {
			return nil, refuse(wire.FailCorrupt, "%s: note %s: want a generation, got %q", ref.Key, noteGen, m.Note[noteGen])
		}
		all = append(all, wire.Amendment{Manifest: ref, Plan: plan(c.recipe), From: from, Gen: gen})
	}
}
