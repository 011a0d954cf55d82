package warmstart

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/ropewalk/ropewalk/activities/resolver"
	"github.com/ropewalk/ropewalk/activities/resource"
	"github.com/ropewalk/ropewalk/activities/stage"
	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/internal/curation"
	"github.com/ropewalk/ropewalk/internal/enginepool"
	"github.com/ropewalk/ropewalk/internal/planning"
	"github.com/ropewalk/ropewalk/internal/seed"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/internal/training"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/checkpoint"
	"github.com/ropewalk/ropewalk/policy/learner"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/rollout"
	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/tool/tools"
)

// WarmStart makes the first policy: fresh weights, cloned from a noisy scripted teacher. It commits the policy
// outside the run, under the digest of all its inputs (warmInputs), so that a second run with the same inputs reuses
// it.
type WarmStart struct{ *stage.Worker }

// Execute clones, or finds the warm start of an earlier run.
func (a WarmStart) Execute(ctx context.Context, e *stage.Env, in api.Scope) (out api.WarmStarted, err error) {
	s := stage.Spec{Scope: in, Stage: schema.StageWarmStart, Turn: -1, Shard: -1}
	err = stage.Execute(ctx, a.Worker, e, s, &out, func(ctx context.Context, w *stage.Draft) error {
		// An adapter on random weights would learn little. So the adapter starts from the finished warm start.
		w.Recipe = w.Recipe.WithoutAdapter()
		made, ref, shared, err := a.ofFork(ctx, in.Run)
		if err != nil {
			return err
		}
		if shared {
			w.Manifest.Inputs = append(w.Manifest.Inputs, ref)
			w.Manifest.Checkpoint, w.Manifest.Critic = made.Checkpoint, made.Critic
			out.Policy = api.PolicyRef{Digest: made.Checkpoint.Digest}
			return nil
		}
		if made, ref, err = a.findOrMake(ctx, w, in, w.Recipe); err != nil {
			return err
		}
		w.Manifest.Inputs = append(w.Manifest.Inputs, ref)
		w.Manifest.Checkpoint = made.Checkpoint
		if w.Recipe.Forms() {
			if out.Initial, err = a.initialPolicy(ctx, w, in, w.Recipe); err != nil {
				return err
			}
		}
		if w.Recipe.Loss.Value() != nil {
			critic, err := a.firstCritic(ctx, w, in, w.Recipe, *made.Checkpoint)
			if err != nil {
				return err
			}
			w.Manifest.Critic = &critic
		}
		out.Loss, out.Correct = made.Stats["loss"], made.Stats["correct"]
		out.Policy = api.PolicyRef{Digest: made.Checkpoint.Digest}
		w.Timing.Rows, w.Timing.Tokens = int64(made.Stats[schema.StatRows]), int64(made.Stats[schema.StatTokens])
		return nil
	})
	out.Policy.Manifest = out.Manifest
	return out, err
}

// ofFork returns the first policy of the run that a fork shares steps with; ok is false if the run is no fork.
func (a WarmStart) ofFork(ctx context.Context, run string) (m schema.Manifest, ref schema.Ref, ok bool, err error) {
	prepare, _, _, err := a.Record.Lookup(ctx, schema.AtInit(run, schema.StagePrepare))
	if err != nil {
		return m, ref, false, err
	}
	fork, err := prepare.Fork()
	if err != nil || fork.Run == "" {
		return m, ref, false, err
	}
	m, out, err := a.PolicyAfter(ctx, fork.Run, 0)
	return m, out.Manifest, true, err
}

// findOrMake returns the shared warm start. Nothing that it returns says whether an earlier run has made it: the run's
// manifest follows from the inputs alone, also if the worker ends between the two manifests.
func (a WarmStart) findOrMake(ctx context.Context, w *stage.Draft, in api.Scope, recipe *recipes.Recipe,
) (schema.Manifest, schema.Ref, error) {
	if p := recipe.Policy.Pinned; p != nil && !recipe.Clones() {
		return a.Recipes.PinnedModel(ctx, p)
	}
	trainer, err := w.Trainer(ctx, in, recipe)
	if err != nil {
		return schema.Manifest{}, schema.Ref{}, err
	}
	from := warmInputsOf(recipe, trainer.Describe())
	shown, err := a.givenDemonstrations(ctx, in, recipe)
	if err != nil {
		return schema.Manifest{}, schema.Ref{}, err
	}
	if shown != nil {
		from.Demonstrations = shown.digest
	}
	data, err := a.Recipes.KeptTasks(ctx, in.Run, recipe)
	if err != nil {
		return schema.Manifest{}, schema.Ref{}, err
	}
	if data != nil {
		from.Tasks = data.Digest
	}
	text, err := schema.Canonical(from)
	if err != nil {
		return schema.Manifest{}, schema.Ref{}, err
	}
	inputs := schema.Digest(text)
	place := schema.AtWarmStart(inputs)
	found, ref, ok, err := a.Record.Lookup(ctx, place)
	if err != nil || ok {
		return found, ref, err
	}
	m := schema.NewManifest(place, a.Code, inputs)
	document, err := a.Record.Shard(ctx, place, schema.Documents, text, 1)
	if err != nil {
		return m, ref, err
	}
	m.Shards = append(m.Shards, document)
	if err := a.make(ctx, w, trainer, from.recipe(), teaching{data, shown}, place, &m); err != nil {
		return m, ref, err
	}
	m, ref, _, err = a.Record.Commit(ctx, m)
	return m, ref, err
}

// initialPolicy finds or makes the policy that the warm start begins with: the warm start of a recipe that clones
// nothing.
func (a WarmStart) initialPolicy(ctx context.Context, w *stage.Draft, in api.Scope, recipe *recipes.Recipe,
) (*api.PolicyRef, error) {
	initial := *recipe
	initial.WarmStart.Steps, initial.WarmStart.Demonstrations = 0, nil
	made, ref, err := a.findOrMake(ctx, w, in, &initial)
	if err != nil {
		return nil, fmt.Errorf("make the policy before the warm start: %w", err)
	}
	return &api.PolicyRef{Manifest: ref, Digest: made.Checkpoint.Digest}, nil
}

// make writes the demonstrations, clones them and saves the weights. It drops the optimiser's state: reinforcement
// learning starts AdamW from zero.
func (a WarmStart) make(ctx context.Context, w *stage.Draft, trainer *enginepool.Trainer, recipe *recipes.Recipe,
	from teaching, place schema.Place, m *schema.Manifest) error {
	if from.given == nil && !recipe.Environment.Declaration().Demonstrated || recipe.WarmStart.Steps == 0 {
		return a.saveInitial(ctx, trainer, recipe, place, m)
	}
	demos, tokens, right, err := a.demonstrations(ctx, w, recipe, from)
	if err != nil {
		return err
	}
	config, err := training.Clone(recipe)
	if err != nil {
		return err
	}
	var result learner.CloneResult
	var saved schema.Checkpoint
	err = trainer.Exclusive(func(t policy.Trainer) (err error) {
		if err = a.initialise(ctx, trainer, recipe); err != nil {
			return err
		}
		if result, err = learner.Clone(ctx, t, demos, config, w.Progress.Set); err != nil {
			return fmt.Errorf("clone %d demonstrations: %w", len(demos), err)
		}
		stage.NoteMemory(m, stage.NoteSmaller, result.Smaller)
		saved, err = trainer.Save(ctx, policy.RolePolicy, place, 0, false, nil)
		return err
	})
	if err != nil {
		return err
	}
	m.Checkpoint = &saved
	m.Stats = map[string]float64{
		schema.StatRows: float64(len(demos)), schema.StatTokens: float64(tokens),
		"correct": right,
		"loss":    result.Steps[len(result.Steps)-1].Loss,
	}
	return nil
}

// saveInitial saves the initial weights of a policy that clones nothing: nothing demonstrates its tasks, or
// warm_start.steps is 0.
func (a WarmStart) saveInitial(ctx context.Context, trainer *enginepool.Trainer, recipe *recipes.Recipe,
	place schema.Place, m *schema.Manifest) error {
	return trainer.Exclusive(func(policy.Trainer) error {
		if err := a.initialise(ctx, trainer, recipe); err != nil {
			return err
		}
		saved, err := trainer.Save(ctx, policy.RolePolicy, place, 0, false, nil)
		if err != nil {
			return err
		}
		m.Checkpoint, m.Stats = &saved, map[string]float64{schema.StatRows: 0, schema.StatTokens: 0}
		return nil
	})
}

// teaching is what the demonstrations come from, next to the recipe.
type teaching struct {
	data  *resolver.Tasks // the tasks that are kept; nil = all
	given *given          // demonstrations that a recipe names; nil = a script writes them
}

// demonstrations returns the rows to clone, their tokens, and the share of the script's demonstrations that are right.
func (a WarmStart) demonstrations(ctx context.Context, w *stage.Draft, recipe *recipes.Recipe,
	from teaching) (demos []learner.Demo, tokens int, right float64, err error) {
	if from.given != nil {
		demos, tokens = from.given.rowsToClone(recipe.Seed, recipe.WarmStart.Steps*recipe.WarmStart.Batch)
		return demos, tokens, 0, nil
	}
	loop, err := a.Recipes.Loop(recipe, resolver.RolloutSampling(recipe))
	if err != nil {
		return nil, 0, 0, err
	}
	world, err := a.Recipes.World(recipe)
	if err != nil {
		return nil, 0, 0, err
	}
	t := recipe.WarmStart.Teacher
	script := rollout.Script{Noise: recipe.WarmStart.Noise, Lesson: env.Lesson{Levels: recipe.WarmStart.Levels,
		Noise: env.Noise(t), Faulty: recipe.WarmStart.Noise, Tools: recipe.Rollout.ToolNames()}}
	script.Teacher, _ = world.(env.Teacher)
	if script.Teacher == nil && !recipe.Environment.Declaration().Interactive {
		return nil, 0, 0, badinput.Errorf("warm_start: nothing in environment %s writes "+
			"demonstrations", recipe.Environment.Name)
	}
	if from.data != nil && script.Teacher != nil {
		script.Teacher = curation.Teacher{Teacher: script.Teacher, Kept: from.data.Kept}
	}
	if recipe.Forms() {
		script.Teacher = env.FormTeacher{Teacher: script.Teacher}
	}
	executor := a.Execution.Sandbox
	if own, ok := world.(env.Interpreter); ok {
		executor = sandbox.Known{Interpret: own.Interpret, Next: executor}
	}
	box, err := a.Execution.OpenTools(recipe, tools.Host{Sandbox: executor,
		Limits: resource.CallLimits(recipe.Sandbox)})
	if err != nil {
		return nil, 0, 0, err
	}
	teacher := rollout.Demonstrator{Loop: loop, Box: box, Script: script}
	n, written := recipe.WarmStart.Steps*recipe.WarmStart.Batch, 0
	for len(demos) < n {
		more := n - len(demos)
		if recipe.Whole() { // a demonstration has one row for each of its turns
			more = (more + rowsAtLeast - 1) / rowsAtLeast
		}
		some, err := teacher.Write(ctx, written, more,
			func(done, _ int) { w.Progress.Set(min(len(demos)+done, n), n) })
		if err != nil {
			return nil, 0, 0, fmt.Errorf("write demonstrations: %w", err)
		}
		written += more
		for _, d := range some {
			sequences, masks := d.Sequences()
			for i := range sequences {
				demos = append(demos, learner.Demo{TokenIDs: sequences[i], LossMask: masks[i]})
				tokens += len(sequences[i])
			}
			if d.Right {
				right++
			}
		}
	}
	return demos, tokens, right / float64(max(written, 1)), nil
}

// rowsAtLeast is the assumed minimum of rows in a demonstration that has several rows, so that the teacher does not
// write many more rows than cloning asks for.
const rowsAtLeast = 4

// initialise makes the weights that a warm start begins with resident in the trainer: those of the model that the run
// starts from, or fresh ones of the recipe's shape.
func (a WarmStart) initialise(ctx context.Context, trainer *enginepool.Trainer, recipe *recipes.Recipe) error {
	if p := recipe.Policy.Pinned; p != nil {
		m, _, err := a.Recipes.PinnedModel(ctx, p)
		if err != nil {
			return err
		}
		return trainer.Load(ctx, policy.RolePolicy, *m.Checkpoint, true)
	}
	dir, err := os.MkdirTemp(a.Engines.Scratch, "init-")
	if err != nil {
		return fmt.Errorf("make a folder for the first weights: %w", err)
	}
	defer os.RemoveAll(dir)
	tokens, err := a.Recipes.Tokenizer(recipe)
	if err != nil {
		return err
	}
	shape, err := planning.NewShape(recipe.Policy, tokens)
	if err != nil {
		return err
	}
	folder := filepath.Join(dir, "checkpoint")
	if err := checkpoint.Init(folder, shape, seed.Derive("policy/init", recipe.Seed), tokens.Files()); err != nil {
		return err
	}
	return trainer.LoadFolder(ctx, policy.RolePolicy, folder, true)
}
