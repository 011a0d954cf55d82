package prepare

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ropewalk/ropewalk/activities/record"
	"github.com/ropewalk/ropewalk/activities/resolver"
	"github.com/ropewalk/ropewalk/activities/stage"
	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/internal/refusal"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store"
)

// AmendRecipe commits the recipe of a live run with changed settings. Everything made under the changed recipe names
// the amendment among its inputs, so the lineage tells which steps had which settings.
type AmendRecipe struct{ *stage.Worker }

// noteTakenAs is the note of an amendment's manifest that holds the generation in which its first step is made.
const noteTakenAs = "generation"

// Execute validates the whole changed recipe; a refused change leaves the run as it is.
func (a AmendRecipe) Execute(ctx context.Context, e *stage.Env, in api.AmendInput) (out api.Amended, err error) {
	out.Timing = api.Timing{Stage: schema.StageAmend, Shard: -1, Turn: -1}
	err = a.Track(ctx, e, stage.AtInit(in.Run), &out.Timing, func(ctx context.Context, _ *stage.Progress) error {
		return a.amend(ctx, in, &out)
	})
	return out, err
}

func (a AmendRecipe) amend(ctx context.Context, in api.AmendInput, out *api.Amended) error {
	m, err := a.draft(ctx, in)
	if err != nil {
		return err
	}
	committed, ref, _, err := a.Record.Commit(ctx, m)
	if err != nil {
		return outage(err)
	}
	out.Manifest = ref
	switch {
	case asked(committed, in):
		if err := a.noteAmendment(ctx, in, ref); err != nil {
			return outage(err)
		}
		out.Amendment, err = amendment(ctx, &a.Recipes, committed, ref)
		return outage(err)
	case in.Settle && committed.Note[schema.NoteVoid] != "":
		out.Void = true
	default:
		out.Taken = true
	}
	return nil
}

// draft makes the manifest that will be committed under the amendment's number: the manifest of the changed recipe
// or, when settling, one that changes nothing.
func (a AmendRecipe) draft(ctx context.Context, in api.AmendInput) (schema.Manifest, error) {
	before, err := a.Recipes.Config(ctx, in.Config)
	if err != nil {
		return schema.Manifest{}, outage(err)
	}
	set := in.Set
	if in.Settle {
		set = nil
	}
	resolved, err := recipes.ResolveCommitted(&before.Recipe, set)
	if err != nil {
		return schema.Manifest{}, err
	}
	if resolved, err = withPins(resolved, before.Recipe.Rollout.MCP); err != nil {
		return schema.Manifest{}, err
	}
	if resolved, err = withModel(resolved, before.Recipe.Policy); err != nil {
		return schema.Manifest{}, err
	}
	if before.Recipe.Seed != resolved.Recipe.Seed {
		return schema.Manifest{}, badinput.Errorf("seed: the seed of a run cannot change")
	}
	if err := samePolicy(ctx, &a.Recipes, &before.Recipe, &resolved.Recipe); err != nil {
		return schema.Manifest{}, err
	}
	if err := samePrivileges(ctx, a.Worker, in, &before.Recipe, &resolved.Recipe); err != nil {
		return schema.Manifest{}, err
	}
	if err := Built(&resolved.Recipe); err != nil {
		return schema.Manifest{}, err
	}
	if k := before.Recipe.Staleness(); resolved.Recipe.Staleness() != k {
		return schema.Manifest{}, badinput.Errorf("pipeline.max_staleness: is %d for the whole run, "+
			"because steps are sampled before others have ended", k)
	}
	place := amendmentPlace(in.Run, in.Number)
	m := schema.NewManifest(place, a.Code, resolved.Digest)
	m.Inputs = []schema.Ref{in.Config}
	if m.Note, err = a.notes(ctx, in); err != nil {
		return schema.Manifest{}, outage(err)
	}
	maps.Copy(m.Note, before.Code)
	shard, err := a.Record.Shard(ctx, place, schema.Documents, resolved.JSON, 1)
	if err != nil {
		return schema.Manifest{}, outage(err)
	}
	m.Shards = append(m.Shards, shard)
	return m, nil
}

// samePolicy refuses changes that a run's policy would not follow: it has its weights and its tokenizer.
func samePolicy(ctx context.Context, r *resolver.Recipes, before, after *recipes.Recipe) error {
	was, is := before.Policy, after.Policy
	was.Pinned, is.Pinned = nil, nil
	switch {
	case !reflect.DeepEqual(was, is):
		return badinput.Errorf("policy: the model of a run cannot change")
	case reflect.DeepEqual(before.Environment, after.Environment) && reflect.DeepEqual(before.Rollout, after.Rollout) &&
		reflect.DeepEqual(before.Tokenizer, after.Tokenizer), after.Environment.Imported():
		return nil
	}
	had, err := r.TokenizerDigest(ctx, before)
	if err != nil {
		return outage(err)
	}
	has, err := r.TokenizerDigest(ctx, after)
	if err == nil && has != had {
		err = badinput.Errorf("set: the change gives the policy another tokenizer; start another run with it")
	}
	return outage(err)
}

func (a AmendRecipe) notes(ctx context.Context, in api.AmendInput) (map[string]string, error) {
	from, changes := strconv.Itoa(in.From), strings.Join(in.Set, " ")
	if in.Settle {
		return map[string]string{schema.NoteFromStep: from, schema.NoteVoid: changes}, nil
	}
	gen := 0
	if in.Rerun {
		var err error
		if gen, err = a.FreeGeneration(ctx, in.Run, in.From); err != nil {
			return nil, err
		}
	}
	return map[string]string{
		schema.NoteFromStep: from, noteTakenAs: strconv.Itoa(gen), schema.NoteChanges: changes,
	}, nil
}

// asked reports whether a committed amendment is the requested one, committed by this attempt or another.
func asked(m schema.Manifest, in api.AmendInput) bool {
	return m.Note[schema.NoteVoid] == "" && m.Note[schema.NoteFromStep] == strconv.Itoa(in.From) &&
		m.Note[schema.NoteChanges] == strings.Join(in.Set, " ") && slices.Equal(m.Inputs, []schema.Ref{in.Config})
}

// outage makes sure that an unavailable store, or a store that refuses this worker, does not count as a refused
// change. A refused change certainly committed nothing, but before an outage an earlier attempt may have committed
// the amendment.
func outage(err error) error {
	if errors.Is(err, store.ErrNoBucket) || errors.Is(err, store.ErrCredentials) {
		return errors.New(err.Error())
	}
	return err
}

// amendmentPlace is the place of a run's n-th amendment.
func amendmentPlace(run string, n int) schema.Place {
	return schema.AtInit(run, schema.StageAmend).WithTry(n)
}

// Amendments returns a run's amendments that are in force, in the order they were made, and the first unused number.
// In force are the last amendment and the chain that it was made from. The run reported all others as failed.
func Amendments(ctx context.Context, r *resolver.Recipes, run string) (inForce []api.Amendment, next int, err error) {
	var all []api.Amendment
	madeFrom := map[schema.Ref]schema.Ref{}
	for ; ; next++ {
		m, ref, found, err := r.Records.Record.Lookup(ctx, amendmentPlace(run, next))
		if err != nil {
			return nil, 0, err
		}
		if !found {
			break
		}
		if m.Note[schema.NoteVoid] != "" {
			continue
		}
		a, err := amendment(ctx, r, m, ref)
		if err != nil {
			return nil, 0, err
		}
		if madeFrom[ref], err = record.MadeUnder(m); err != nil {
			return nil, 0, err
		}
		all = append(all, a)
	}
	for i, a := range slices.Backward(all) {
		if i == len(all)-1 || a.Manifest == madeFrom[inForce[len(inForce)-1].Manifest] {
			inForce = append(inForce, a)
		}
	}
	slices.Reverse(inForce)
	return inForce, next, nil
}

// amendment reads a committed amendment.
func amendment(ctx context.Context, r *resolver.Recipes, m schema.Manifest, ref schema.Ref) (api.Amendment, error) {
	c, err := r.Config(ctx, ref)
	if err != nil {
		return api.Amendment{}, err
	}
	from, err := strconv.Atoi(m.Note[schema.NoteFromStep])
	if err != nil {
		return api.Amendment{}, refusal.Corruptf("%s: note %s: want a step, got %q",
			ref.Key, schema.NoteFromStep, m.Note[schema.NoteFromStep])
	}
	gen, err := strconv.Atoi(m.Note[noteTakenAs])
	if err != nil {
		return api.Amendment{}, refusal.Corruptf("%s: note %s: want a generation, got %q",
			ref.Key, noteTakenAs, m.Note[noteTakenAs])
	}
	return api.Amendment{Manifest: ref, Plan: PlanOf(c.Recipe), From: from, Gen: gen}, nil
}

// noteAmendment notes who asked for a committed amendment. Its manifest does not say it: later stages name it by its
// digest, and an equal change must give equal bytes. A store that lets this worker note nothing does
// not stop the run, for the command has noted the request itself.
func (a AmendRecipe) noteAmendment(ctx context.Context, in api.AmendInput, committed schema.Ref) error {
	if in.Actor == "" {
		return nil
	}
	detail, err := json.Marshal(map[string]any{"amendment": in.Number, "from_step": in.From, "set": in.Set})
	if err != nil {
		return err
	}
	d := schema.NewDeed(schema.DeedAmend, string(detail), in.Actor, stage.Hostname(), time.UnixMicro(in.At))
	d.Manifest = committed.Key
	err = a.NoteDeed(ctx, in.Run, d, fmt.Sprintf("%s-%d", schema.DeedAmend, in.Number))
	if errors.Is(err, store.ErrCredentials) {
		slog.WarnContext(ctx, "the record does not say who asked for a change", "error", err)
		return nil
	}
	return err
}
