package activities

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/ropewalk/ropewalk/activities/wire"
	"github.com/ropewalk/ropewalk/internal/machine"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/ropewalk/ropewalk/sandbox/symbolic"
	"github.com/ropewalk/ropewalk/schema"
)

// PrepareRun resolves and validates the recipe and commits it with the code's digest. A run that
// is prepared already is gone on with, if the recipe is the same.
type PrepareRun struct{ *Deps }

// Execute fails for good, with every fault of the recipe, when the recipe is bad.
func (a PrepareRun) Execute(ctx context.Context, in wire.PrepareInput) (wire.Prepared, error) {
	out := wire.Prepared{}
	timing := wire.Timing{Stage: wire.StagePrepare, Shard: -1, Turn: -1}
	err := tracked(ctx, &timing, func(ctx context.Context, _ *progress) error { return a.prepare(ctx, in, &out) })
	out.Timing = timing
	return out, err
}

func (a PrepareRun) prepare(ctx context.Context, in wire.PrepareInput, out *wire.Prepared) error {
	place := schema.AtInit(in.Run, wire.StagePrepare)
	committed, ref, found, err := a.Record.Lookup(ctx, place)
	if err != nil {
		return err
	}
	switch {
	case in.Resume && !found:
		return refuse(wire.FailBadInput, "run_id: run %s has committed no recipe in %s, so there is nothing to resume", in.Run, a.Store)
	case in.Resume:
		out.Adopted = true
	default:
		resolved, err := recipes.Resolve(recipeName(in), in.RecipeYAML, in.Overrides, in.Seed, in.Steps)
		if err != nil {
			return err
		}
		if err := suits(in, resolved.Recipe); err != nil {
			return err
		}
		if err := built(&resolved.Recipe); err != nil {
			return err
		}
		if err := a.able(ctx, &resolved.Recipe); err != nil {
			return err
		}
		if err := a.keepsSessions(ctx, &resolved.Recipe); err != nil {
			return err
		}
		if found && committed.Config != resolved.Digest {
			return refuse(wire.FailBadInput, "run_id: run %s was made by another recipe; choose another run id, or resume it without a recipe", in.Run)
		}
		engine, err := a.chooseEngine(ctx, &resolved.Recipe)
		if err != nil {
			return err
		}
		if ref, err = a.commitRecipe(ctx, in.Run, place, resolved, engine); err != nil {
			return err
		}
	}
	out.Manifest = ref
	c, err := a.config(ctx, ref)
	if err != nil {
		return err
	}
	if err := a.able(ctx, &c.recipe); err != nil { // a run may be resumed on another machine
		return err
	}
	if err := a.keepsSessions(ctx, &c.recipe); err != nil {
		return err
	}
	out.Plan = plan(c.recipe)
	engine, err := a.chooseEngine(ctx, &c.recipe) // the committed choice, on the worker that is there now
	if err != nil {
		return err
	}
	out.Machine = machine.Of(a.Trainer.engine.Describe())
	if engine.kind == recipes.EngineTorch {
		out.Machine.Engine = "PyTorch on " + engine.why
	}
	if c.recipe.Environment.CallsTools() {
		out.Machine.Sandbox = string(a.Tier)
	}
	if out.Amendments, err = a.amendments(ctx, in.Run); err != nil {
		return err
	}
	return a.whereToGoOn(ctx, in.Run, out)
}

// recipeName is the built-in recipe's name, or the name that messages give an inline one.
func recipeName(in wire.PrepareInput) string {
	if in.RecipeYAML != "" && in.RecipeFile != "" {
		return in.RecipeFile
	}
	if in.RecipeYAML != "" {
		return "recipe_yaml"
	}
	return in.Recipe
}

// suits refuses a recipe of the other kind of workflow.
func suits(in wire.PrepareInput, r recipes.Recipe) error {
	name := r.Environment.Name
	if in.Kind == "train" && r.Environment.Imported() {
		return refuse(wire.FailBadInput, "environment.name: %s holds imported solutions, which cannot be trained on; use ropewalk import (ReprocessRun)", name)
	}
	if in.Kind == "reprocess" && name != in.Format {
		return refuse(wire.FailBadInput, "environment.name: an import of format %s wants a recipe of that environment, got %s", in.Format, name)
	}
	return nil
}

// built refuses a recipe that asks for what no stage does yet, with everything that is missing.
func built(r *recipes.Recipe) error {
	planned := r.Planned()
	if len(planned) == 0 {
		return nil
	}
	return refuse(wire.FailBadInput, "recipe %s cannot run yet:\n%s", r.Name, strings.Join(planned, "\n"))
}

// isolates refuses a recipe whose calls this worker's sandbox would isolate too weakly.
func (d *Deps) isolates(r *recipes.Recipe) error {
	if !r.Environment.CallsTools() {
		return nil
	}
	least, err := sandbox.ParseTier(r.Sandbox.MinTier)
	if err != nil {
		return fmt.Errorf("sandbox.min_tier: %w", err)
	}
	if d.Tier.AtLeast(least) {
		return nil
	}
	return refuse(wire.FailBadInput, "sandbox.min_tier: the recipe wants tier %s, and the worker's machine grants %s: `ropewalk sandbox doctor` says there what is missing; a recipe that names the weaker tier accepts it", least, d.Tier)
}

// isolatedRecipe is recipe for a stage that runs code: it refuses one that wants stronger isolation than there is.
func (d *Deps) isolatedRecipe(ctx context.Context, scope wire.Scope) (*recipes.Recipe, error) {
	r, err := d.recipe(ctx, scope)
	if err != nil {
		return nil, err
	}
	return r, d.isolates(r)
}

// able refuses a recipe that this worker's sandbox cannot run: it isolates too weakly, or has no sympy to
// compare answers with.
func (d *Deps) able(ctx context.Context, r *recipes.Recipe) error {
	if err := d.isolates(r); err != nil || !r.Reward.Symbolic {
		return err
	}
	err := symbolic.Available(ctx, d.Sandbox)
	if errors.Is(err, symbolic.ErrNoSympy) {
		return refuse(wire.FailBadInput, "reward.symbolic: %v", err)
	}
	if err != nil {
		return fmt.Errorf("reward.symbolic: try the sandbox: %w", err)
	}
	return nil
}

func (a PrepareRun) commitRecipe(ctx context.Context, run string, place schema.Place, resolved *recipes.Resolved, engine engineChoice) (schema.Ref, error) {
	m := schema.NewManifest(place, a.Code, resolved.Digest)
	shard, err := a.Record.Shard(ctx, place, schema.Documents, resolved.JSON, 1)
	if err != nil {
		return schema.Ref{}, err
	}
	m.Shards = append(m.Shards, shard)
	m.Note = map[string]string{"recipe": resolved.Recipe.Name, "seed": strconv.FormatUint(resolved.Recipe.Seed, 10)}
	engine.note(&m)
	if err := a.catalogue(ctx, run, resolved.Recipe); err != nil {
		return schema.Ref{}, err
	}
	_, ref, _, err := a.Record.Commit(ctx, m)
	return ref, err
}

// catalogue puts the run's entry; the first attempt's stands.
func (a PrepareRun) catalogue(ctx context.Context, run string, r recipes.Recipe) error {
	entry, err := schema.Canonical(schema.CatalogueEntry{
		Run: run, Recipe: r.Name, Seed: r.Seed, Steps: r.Steps, Created: time.Now().UTC().Format(time.RFC3339),
	})
	if err != nil {
		return err
	}
	key := schema.CatalogueKey(run)
	if existing, err := a.Store.List(ctx, key); err != nil || len(existing) > 0 {
		return err
	}
	if err := a.Store.PutIfAbsent(ctx, key, entry); err != nil {
		return fmt.Errorf("enter run %s into the catalogue: %w", run, err)
	}
	return nil
}

func plan(r recipes.Recipe) wire.Plan {
	p := wire.Plan{
		Recipe: r.Name, Seed: r.Seed, Steps: r.Steps, MaxTurns: r.Rollout.MaxTurns,
		Grade: r.Reward.Symbolic, Forward: r.Outputs().Any(), Replay: r.Replay != nil, EvaluateEvery: r.Evaluation.Every, BatchRows: r.Rollout.Prompts * r.Rollout.Oversample,
		Chain: resampleOptions(&r, wire.Scope{}).String(),
	}
	if r.Engine.Kind != recipes.EngineCPU && r.Engine.Hosts > 1 {
		p.Hosts = r.Engine.Hosts
	}
	if d := r.Resample.Dynamic; d != nil {
		p.Dynamic = &wire.Dynamic{Target: r.Rollout.Prompts, Tries: d.Tries, ColdStart: d.ColdStartSteps}
	}
	if r.Rollout.ShardGroups > 0 {
		p.Shards = (r.Rollout.Prompts + r.Rollout.ShardGroups - 1) / r.Rollout.ShardGroups
	}
	return p
}

// whereToGoOn finds the first step without a head and the checkpoint that it starts from.
func (a PrepareRun) whereToGoOn(ctx context.Context, run string, out *wire.Prepared) error {
	heads, err := a.Store.List(ctx, schema.HeadsPrefix(run))
	if err != nil {
		return err
	}
	done := map[int]bool{}
	for _, o := range heads {
		_, step, err := schema.ParseHeadKey(o.Key)
		if err != nil {
			return fmt.Errorf("list heads of run %s: %w", run, err)
		}
		if n, err := strconv.Atoi(step); err == nil {
			done[n] = true
		}
	}
	out.NextStep = 1
	for done[out.NextStep] {
		out.NextStep++
	}
	if out.NextStep == 1 || out.Plan.Steps == 0 {
		return nil
	}
	last := out.NextStep - 1
	m, ref, found, err := a.updateOf(ctx, run, last)
	if err != nil {
		return err
	}
	if !found || m.Checkpoint == nil {
		return refuse(wire.FailCorrupt, "step %d of run %s has a head and no update manifest with a checkpoint", last, run)
	}
	out.Policy = &wire.PolicyRef{Manifest: ref, Digest: m.Checkpoint.Digest, Step: last}
	out.Buffer, err = a.bufferOf(ctx, run, strconv.Itoa(last))
	return err
}

// updateOf returns the update manifest that a finished step's head names.
func (d *Deps) updateOf(ctx context.Context, run string, step int) (m schema.Manifest, ref schema.Ref, found bool, err error) {
	head, _, found, err := d.Record.Head(ctx, run, strconv.Itoa(step))
	if err != nil || !found || len(head.Stages[wire.StageUpdate]) == 0 {
		return m, ref, false, err
	}
	ref = head.Stages[wire.StageUpdate][0]
	m, err = d.Record.Read(ctx, ref)
	return m, ref, err == nil, err
}
