package activities

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/ropewalk/ropewalk/activities/wire"
	"github.com/ropewalk/ropewalk/env/calc"
	"github.com/ropewalk/ropewalk/internal/seed"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/checkpoint"
	"github.com/ropewalk/ropewalk/policy/learner"
	"github.com/ropewalk/ropewalk/policy/tokenizer"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/rl/schedule"
	"github.com/ropewalk/ropewalk/schema"
)

// WarmStart makes the first policy: fresh weights, cloned from a noisy scripted teacher. What it
// makes is committed outside the run, under the digest of everything that it follows from, so
// that a second run of the same recipe, seed and code takes it as it is.
type WarmStart struct{ *Deps }

// warmInputs is everything that a warm start follows from.
type warmInputs struct {
	Environment string             `json:"environment"`
	Policy      recipes.Policy     `json:"policy"`
	WarmStart   recipes.WarmStart  `json:"warm_start"`
	Rollout     recipes.Rollout    `json:"rollout"` // its limits bound demonstrations
	Sandbox     recipes.Sandbox    `json:"sandbox"`
	Seed        uint64             `json:"seed"`
	Code        string             `json:"code"`
	Machine     policy.Description `json:"machine"`
	Engine      recipes.Engine     `json:"engine,omitzero"` // of PyTorch: the CPU engine has no settings
}

// Execute clones, or finds that it has been done.
func (a WarmStart) Execute(ctx context.Context, in wire.Scope) (wire.WarmStarted, error) {
	out := wire.WarmStarted{}
	s := spec{scope: in, stage: wire.StageWarmStart, turn: -1, shard: -1}
	err := execute(ctx, a.Deps, s, &out, &out.Done, func(ctx context.Context, w *draft) error {
		recipe, err := a.recipe(ctx, in)
		if err != nil {
			return err
		}
		// An adapter beside random weights would learn little: it begins where the warm start has ended.
		recipe = recipe.WithoutAdapter()
		made, ref, err := a.findOrMake(ctx, w, in, recipe, &out)
		if err != nil {
			return err
		}
		w.manifest.Inputs = append(w.manifest.Inputs, ref)
		w.manifest.Checkpoint = made.Checkpoint
		if recipe.Loss.Value != nil {
			critic, err := a.firstCritic(ctx, w, in, recipe, *made.Checkpoint)
			if err != nil {
				return err
			}
			w.manifest.Critic = &critic
		}
		out.Loss, out.Correct = made.Stats["loss"], made.Stats["correct"]
		out.Policy = wire.PolicyRef{Digest: made.Checkpoint.Digest}
		w.timing.Rows, w.timing.Tokens = int64(made.Stats[schema.StatRows]), int64(made.Stats[schema.StatTokens])
		return nil
	})
	out.Policy.Manifest = out.Manifest
	return out, err
}

func (a WarmStart) findOrMake(ctx context.Context, w *draft, in wire.Scope, recipe *recipes.Recipe, out *wire.WarmStarted) (schema.Manifest, schema.Ref, error) {
	limits := recipe.Rollout
	limits.History = 0 // demonstrations are cloned as a whole
	calls := recipe.Sandbox
	calls.Session = false // their calls are each a program of its own
	trainer, err := w.trainer(ctx, in, recipe)
	if err != nil {
		return schema.Manifest{}, schema.Ref{}, err
	}
	var settings recipes.Engine
	if recipe.Engine.Kind == recipes.EngineTorch {
		settings = recipe.Engine
	}
	text, err := schema.Canonical(warmInputs{
		Environment: recipe.Environment.Name, Policy: recipe.Policy, WarmStart: recipe.WarmStart, Rollout: limits,
		Sandbox: calls, Seed: recipe.Seed, Code: a.Code, Machine: trainer.engine.Describe(), Engine: settings,
	})
	if err != nil {
		return schema.Manifest{}, schema.Ref{}, err
	}
	inputs := schema.Digest(text)
	place := schema.AtWarmStart(inputs)
	found, ref, ok, err := a.Record.Lookup(ctx, place)
	if err != nil || ok {
		out.Reused = ok
		return found, ref, err
	}
	m := schema.NewManifest(place, a.Code, inputs)
	document, err := a.Record.Shard(ctx, place, schema.Documents, text, 1)
	if err != nil {
		return m, ref, err
	}
	m.Shards = append(m.Shards, document)
	if err := a.make(ctx, w, trainer, recipe, place, &m); err != nil {
		return m, ref, err
	}
	m, ref, _, err = a.Record.Commit(ctx, m)
	return m, ref, err
}

// make writes the demonstrations, clones them and saves the weights. The optimiser's state is
// dropped: reinforcement learning starts AdamW afresh.
func (a WarmStart) make(ctx context.Context, w *draft, trainer *slot, recipe *recipes.Recipe, place schema.Place, m *schema.Manifest) error {
	demos, tokens, right, err := a.demonstrations(ctx, w, recipe)
	if err != nil {
		return err
	}
	trainer.mu.Lock()
	defer trainer.mu.Unlock()
	trainer.forget()
	if err := a.initialise(ctx, trainer, recipe); err != nil {
		return err
	}
	result, err := learner.Clone(ctx, trainer.engine, demos, cloneConfig(recipe), w.progress.set)
	if err != nil {
		return fmt.Errorf("clone %d demonstrations: %w", len(demos), trainer.judged(err))
	}
	noteMemory(m, noteSmaller, result.Smaller)
	saved, err := trainer.save(ctx, place, 0, false, nil)
	if err != nil {
		return err
	}
	m.Checkpoint = &saved
	m.Stats = map[string]float64{
		schema.StatRows: float64(len(demos)), schema.StatTokens: float64(tokens),
		"correct": float64(right) / float64(len(demos)),
		"loss":    result.Steps[len(result.Steps)-1].Loss,
	}
	return nil
}

func (a WarmStart) demonstrations(ctx context.Context, w *draft, recipe *recipes.Recipe) (demos []learner.Demo, tokens, right int, err error) {
	loop, err := a.loop(recipe, recipe.Rollout.Temperature)
	if err != nil {
		return nil, 0, 0, err
	}
	t := recipe.WarmStart.Teacher
	noise := calc.Noise{BadCode: t.BadCode, WrongOrder: t.WrongOrder, MissingPrint: t.MissingPrint, NoTool: t.NoTool, WrongCopy: t.WrongCopy}
	n := recipe.WarmStart.Steps * recipe.WarmStart.Batch
	// What the sandbox would answer to the teacher's plain arithmetic is worked out in process; the
	// rest of its code really runs (calc.Interpreter, proven equal to the sandbox by its test).
	executor := calc.Interpreter{Next: a.Sandbox}
	written, err := loop.Demonstrations(ctx, executor, calc.EqualShares(recipe.WarmStart.Levels...), noise, 0, n, w.progress.set)
	if err != nil {
		return nil, 0, 0, fmt.Errorf("write demonstrations: %w", err)
	}
	demos = make([]learner.Demo, len(written))
	for i, d := range written {
		demos[i] = learner.Demo{TokenIDs: d.Tokens, LossMask: d.Mask}
		tokens += len(d.Tokens)
		if d.Right {
			right++
		}
	}
	return demos, tokens, right, nil
}

// initialise makes fresh weights of the recipe's shape resident in the trainer.
func (a WarmStart) initialise(ctx context.Context, trainer *slot, recipe *recipes.Recipe) error {
	dir, err := os.MkdirTemp(trainer.scratch, "init-")
	if err != nil {
		return fmt.Errorf("make a folder for the first weights: %w", err)
	}
	defer os.RemoveAll(dir)
	shape, err := PolicyShape(recipe.Policy, a.tokens)
	if err != nil {
		return err
	}
	folder := filepath.Join(dir, "checkpoint")
	if err := checkpoint.Init(folder, shape, seed.Derive("policy/init", recipe.Seed), a.tokens.Files()); err != nil {
		return err
	}
	return trainer.judged(trainer.engine.Load(ctx, policy.RolePolicy, folder, true))
}

// PolicyShape is the shape of a model that a recipe makes, for the tokenizer of rollouts.
func PolicyShape(p recipes.Policy, tokens *tokenizer.Tokenizer) (checkpoint.Shape, error) {
	end, ok := tokens.ID(tokenizer.EndOfTurn)
	if !ok {
		return checkpoint.Shape{}, fmt.Errorf("tokenizer has no %s", tokenizer.EndOfTurn)
	}
	return checkpoint.Shape{
		Vocab: tokens.VocabSize(), Hidden: p.Hidden, Layers: p.Layers, Heads: p.Heads, KVHeads: p.KVHeads, HeadDim: p.HeadDim,
		FFN: p.FFN, Positions: p.MaxPositions, RopeTheta: p.RopeBase, NormEps: 1e-6, EOS: []int32{end}, Pad: -1,
	}, nil
}

func cloneConfig(recipe *recipes.Recipe) learner.CloneConfig {
	o := recipe.WarmStart.Optimizer
	return learner.CloneConfig{
		Steps: recipe.WarmStart.Steps, Batch: recipe.WarmStart.Batch, MicrobatchTokens: o.MicrobatchTokens,
		WarmupSteps: o.WarmupSteps, Decay: schedule.Kind(o.Decay), Optimizer: stepOptions(o),
		Draw: seed.Rand("warm_start/clone", recipe.Seed),
	}
}
