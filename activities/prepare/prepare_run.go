package prepare

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/ropewalk/ropewalk/activities/learn"
	"github.com/ropewalk/ropewalk/activities/stage"
	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/internal/enginepool"
	"github.com/ropewalk/ropewalk/internal/machine"
	"github.com/ropewalk/ropewalk/internal/preflight"
	"github.com/ropewalk/ropewalk/internal/refusal"
	"github.com/ropewalk/ropewalk/internal/selection"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/schema"
)

// PrepareRun resolves and validates the recipe and commits it with the code's digest. A run that is already prepared
// continues, if the recipe is the same.
type PrepareRun struct{ *stage.Worker }

// Execute fails for good if the recipe is bad; the error lists all its faults.
func (a PrepareRun) Execute(ctx context.Context, e *stage.Env, in api.PrepareInput) (out api.Prepared, err error) {
	out.Timing = api.Timing{Stage: schema.StagePrepare, Shard: -1, Turn: -1}
	err = a.Track(ctx, e, stage.AtInit(in.Run), &out.Timing, func(ctx context.Context, p *stage.Progress) error {
		return a.prepare(ctx, in, &out, p)
	})
	return out, err
}

func (a PrepareRun) prepare(ctx context.Context, in api.PrepareInput, out *api.Prepared, p *stage.Progress) error {
	// a run that continues reads its record from the store, which may have been damaged or repaired
	a.Record.Forget(in.Run)
	place := schema.AtInit(in.Run, schema.StagePrepare)
	committed, ref, found, err := a.Record.Lookup(ctx, place)
	if err != nil {
		return err
	}
	switch {
	case in.Resume && !found:
		return badinput.Errorf("run_id: run %s has committed no recipe in %s, so there is nothing to "+
			"resume", in.Run, a.Store)
	case in.Resume:
		out.Adopted = true
	default:
		if err := a.findLatest(ctx, &in, committed, found); err != nil {
			return err
		}
		resolved, err := a.resolve(ctx, in)
		if err != nil {
			return err
		}
		notes := resolved.Notes // what follows makes other values of it
		if err := suits(in, resolved.Recipe); err != nil {
			return err
		}
		if err := Built(&resolved.Recipe); err != nil {
			return err
		}
		if idle := resolved.Recipe.Idle(); in.Kind == kindTrain && len(idle) > 0 {
			return badinput.Errorf("%s", strings.Join(idle, "\n"))
		}
		if !found {
			if err := confirmed(ctx, a.Worker, in.Run, resolved); err != nil {
				return err
			}
		}
		if resolved, err = a.PinTools(ctx, resolved, ref, found); err != nil {
			return err
		}
		if err := a.Execution.Able(ctx, &resolved.Recipe); err != nil {
			return err
		}
		if resolved, err = a.pinModel(ctx, resolved, ref, found, p.Set); err != nil {
			return err
		}
		if err := a.speaks(&resolved.Recipe); err != nil {
			return err
		}
		if err := a.measuresPinned(ctx, &in, &resolved.Recipe); err != nil {
			return err
		}
		if err := Storable(a.Worker, &resolved.Recipe); err != nil {
			return err
		}
		if found && (committed.Config != resolved.Digest || committed.Note[schema.NoteFork] != in.ForkNote() ||
			committed.Note[schema.NoteForkFrom] != in.ForkFrom) {
			return badinput.Errorf("run_id: run %s was made by another recipe, or as another fork; choose another run "+
				"id, or resume it without a recipe", in.Run)
		}
		engine, err := a.engine(ctx, in, &resolved.Recipe)
		if err != nil {
			return err
		}
		if err := samplesApart(in, &resolved.Recipe, engine.Kind); err != nil {
			return err
		}
		if err := a.reads(ctx, in, &resolved.Recipe); err != nil {
			return err
		}
		if out.Notes, err = a.preflight(ctx, in, &resolved.Recipe); err != nil {
			return err
		}
		out.Notes = append(notes, out.Notes...)
		var made schema.Manifest
		if made, ref, err = a.CommitPrepared(ctx, in, place, resolved, engine); err != nil {
			return err
		}
		if !found {
			committed = made
		}
	}
	if out.Evaluates, err = evaluates(in, committed); err != nil {
		return err
	}
	if err := a.Store.Delete(ctx, schema.RequestKey(in.Run)); err != nil { // the record now holds the request
		return fmt.Errorf("remove the request for run %s: %w", in.Run, err)
	}
	if err := a.NoteState(ctx, in.Run, schema.NewStateNote(schema.StateRunning, "", "", time.Now())); err != nil {
		return err
	}
	out.Manifest = ref
	c, err := a.Recipes.Config(ctx, ref)
	if err != nil {
		return err
	}
	if err := suits(in, c.Recipe); err != nil { // to resume an import, import the file again
		return err
	}
	if err := a.Execution.Able(ctx, &c.Recipe); err != nil { // a run may be resumed on another machine
		return err
	}
	if err := Storable(a.Worker, &c.Recipe); err != nil {
		return err
	}
	out.Plan = PlanOf(c.Recipe)
	if out.Evaluation, err = a.planEvaluation(ctx, out.Evaluates, &c.Recipe); err != nil {
		return err
	}
	engine, err := a.engine(ctx, in, &c.Recipe) // apply the committed choice to the current worker
	if err != nil {
		return err
	}
	trainer, _ := a.Engines.Pool.CPU()
	out.Machine = machine.Of(trainer.Describe())
	if kind := (recipes.Engine{Kind: engine.Kind}).Declaration(); kind.Leased {
		out.Machine.Engine = kind.On + engine.Why
	}
	if c.Recipe.Environment.CallsTools() {
		out.Machine.Sandbox = string(a.Execution.Tier)
	}
	fork, err := committed.Fork()
	if err == nil {
		err = a.sharePart(ctx, committed, ref, fork)
	}
	if err != nil {
		return err
	}
	if out.Amendments, out.NextAmendment, err = Amendments(ctx, &a.Recipes, in.Run); err != nil {
		return err
	}
	return a.whereToGoOn(ctx, in.Run, fork.Step, out)
}

// preflight checks what the recipe names, so that the run does not park later because of it.
func (a PrepareRun) preflight(ctx context.Context, in api.PrepareInput, r *recipes.Recipe) ([]string, error) {
	if r.Environment.Imported() {
		return nil, nil
	}
	world, err := a.Recipes.World(r)
	if err != nil {
		return nil, err
	}
	return preflight.World(ctx, r, world, in.Kind != kindEvaluate)
}

// apart reports whether the engine that generates is another one than the engine of that kind that trains.
func apart(r *recipes.Recipe, kind string) bool {
	return recipes.Engine{Kind: kind}.Declaration().Shared || len(r.Engine.Servers) > 0
}

// samplesApart refuses a pipelined recipe on an engine that generates with the models that it trains: it holds one
// version at a time.
func samplesApart(in api.PrepareInput, r *recipes.Recipe, kind string) error {
	if in.Kind == kindEvaluate || r.Staleness() == 0 || apart(r, kind) {
		return nil
	}
	return badinput.Errorf("pipeline.max_staleness: rollouts run while the policy is updated, and an engine of kind "+
		"%s generates with the model that it trains; name engine.servers, or set pipeline.max_staleness=0", kind)
}

// recipeName is the built-in recipe's name, or the name of an inline recipe in messages.
func recipeName(in api.PrepareInput) string {
	if in.RecipeYAML != "" && in.RecipeFile != "" {
		return in.RecipeFile
	}
	if in.RecipeYAML != "" {
		return "recipe_yaml"
	}
	return in.Recipe
}

// suits refuses a recipe for the other kind of workflow.
func suits(in api.PrepareInput, r recipes.Recipe) error {
	name := r.Environment.Name
	if in.Kind != "reprocess" && r.Environment.Imported() {
		return badinput.Errorf("environment.name: %s holds imported trajectories, which no policy can be run on; use "+
			"ropewalk import (ReprocessRun)", name)
	}
	if in.Kind == "reprocess" && name != in.Format {
		return badinput.Errorf("environment.name: an import of format %s wants a recipe of that environment, got %s",
			in.Format, name)
	}
	return nil
}

// Built refuses a recipe that leaves a needed setting or section open; the error lists everything that is missing.
func Built(r *recipes.Recipe) error {
	return Implemented(r.Name, append(r.Planned(), r.Unset()...))
}

// Implemented refuses a recipe that misses something.
func Implemented(name string, missing []string) error {
	if len(missing) == 0 {
		return nil
	}
	return badinput.Errorf("recipe %s cannot run yet:\n%s", name, strings.Join(missing, "\n"))
}

// CommitPrepared commits the resolved recipe of a run, and the run's entry in the catalogue.
func (a PrepareRun) CommitPrepared(ctx context.Context, in api.PrepareInput, place schema.Place,
	resolved *recipes.Resolved, engine enginepool.Choice) (schema.Manifest, schema.Ref, error) {
	m := schema.NewManifest(place, a.Code, resolved.Digest)
	shard, err := a.Record.Shard(ctx, place, schema.Documents, resolved.JSON, 1)
	if err != nil {
		return m, schema.Ref{}, err
	}
	m.Shards = append(m.Shards, shard)
	m.Note = map[string]string{"recipe": resolved.Recipe.Name, "seed": strconv.FormatUint(resolved.Recipe.Seed, 10)}
	engine.Note(&m)
	if err := a.noteCode(ctx, &resolved.Recipe, &m); err != nil {
		return m, schema.Ref{}, err
	}
	if err := noteEvaluates(in, &m); err != nil {
		return m, schema.Ref{}, err
	}
	if err := a.share(ctx, in, &resolved.Recipe, &m); err != nil {
		return m, schema.Ref{}, err
	}
	if err := a.catalogue(ctx, in.Run, resolved.Recipe); err != nil {
		return m, schema.Ref{}, err
	}
	m, ref, _, err := a.Record.Commit(ctx, m)
	return m, ref, err
}

// catalogue stores the run's entry in the catalogue; if an earlier attempt has stored one, that entry stays.
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

// PlanOf is what the workflows need to know of a recipe.
func PlanOf(r recipes.Recipe) api.Plan {
	p := api.Plan{
		Recipe: r.Name, Seed: r.Seed, Steps: r.Steps, MaxTurns: r.History().All(r.Rollout.MaxTurns),
		Needs: r.Needs(), EvaluateEvery: r.Evaluation.Every, BatchRows: r.Rollout.Prompts * r.Rollout.SamplesPerPrompt,
		Chain: selection.Chain(&r, 0).String(), Compact: r.Record.Compact, Summaries: r.SummaryTokens() > 0,
		Staleness: r.Staleness(),
	}
	if !r.Engine.Declaration().Shared && r.Engine.Hosts > 1 {
		p.Hosts = r.Engine.Hosts
	}
	p.Interleaved = p.Hosts <= 1 && !r.Environment.Imported() && r.Rollout.Mode != recipes.ModeStaged
	p.Finish = p.Interleaved && len(r.Engine.Servers) == 0 && p.Staleness == 0
	if t := r.Rollout.Tree; t != nil {
		p.MaxTurns *= t.Phases()
	}
	if d := r.Resample.Dynamic(); d != nil {
		p.Dynamic = &api.Dynamic{Target: r.Rollout.Prompts, Tries: d.Tries, ColdStart: d.ColdStart}
	}
	p.Evaluations = api.EvaluateBetween
	if apart(&r, r.Engine.Kind) {
		p.Evaluations = api.EvaluateAlongside
	}
	p.PromptsAhead = p.Dynamic == nil && !r.Environment.Imported() && r.Schedule.Unsolved(math.MaxInt) == 0
	if r.Rollout.ShardGroups > 0 {
		p.Shards = (r.Rollout.Prompts + r.Rollout.ShardGroups - 1) / r.Rollout.ShardGroups
	}
	return p
}

// whereToGoOn finds the first step without a head and the checkpoint that it starts from. shared is the number of steps
// that the run shares with another one.
func (a PrepareRun) whereToGoOn(ctx context.Context, run string, shared int, out *api.Prepared) error {
	done, err := a.Steps(ctx, run)
	if err != nil {
		return err
	}
	out.NextStep = 1
	for _, step := range done {
		if step == out.NextStep {
			out.NextStep++
		}
	}
	if out.NextStep == 1 || out.Plan.Steps == 0 {
		return nil
	}
	if err := a.findUnfinished(ctx, run, shared, out); err != nil {
		return err
	}
	last := out.NextStep - 1
	for step := max(1, last-out.Plan.Staleness); step <= last; step++ {
		m, ref, found, err := a.UpdateOf(ctx, run, step)
		if err != nil {
			return err
		}
		if !found || m.Checkpoint == nil {
			return refusal.Corruptf("step %d of run %s has a head and no update manifest with a checkpoint", step, run)
		}
		after := api.PolicyRef{Manifest: ref, Digest: m.Checkpoint.Digest, Step: step}
		if step == last {
			out.Policy = &after
		} else {
			out.Earlier = append(out.Earlier, after)
		}
	}
	out.Buffer, err = learn.BufferOf(ctx, a.Records, run, strconv.Itoa(last))
	return err
}

// findUnfinished finds the finished steps that lack what is made alongside the next step.
func (a PrepareRun) findUnfinished(ctx context.Context, run string, shared int, out *api.Prepared) error {
	listed, err := a.Store.List(ctx, schema.ManifestsPrefix(run))
	if err != nil {
		return fmt.Errorf("list manifests of run %s: %w", run, err)
	}
	there := map[string]bool{}
	for _, o := range listed {
		there[o.Key] = true
	}
	for step := 1 + shared; step < out.NextStep; step++ {
		if !there[schema.At(run, step, stage.TimingsStep).ManifestKey()] {
			out.Untimed = append(out.Untimed, step)
		}
		if out.Plan.Compact && !there[schema.At(run, step, schema.StageCompact).ManifestKey()] {
			out.Uncompacted = append(out.Uncompacted, step)
		}
	}
	return nil
}
