package prepare

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/ropewalk/ropewalk/activities/resolver"
	"github.com/ropewalk/ropewalk/activities/stage"
	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/internal/enginepool"
	"github.com/ropewalk/ropewalk/internal/preflight"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/policy/checkpoint"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/schema"
)

// Kinds of PrepareInput.
const (
	kindTrain    = "train"
	kindEvaluate = "evaluate" // an evaluation of its own
)

// engine chooses the engine of a run, which must fit into the machine. An evaluation of its own trains nothing, and
// with servers it does not use the engine.
func (a PrepareRun) engine(ctx context.Context, in api.PrepareInput, r *recipes.Recipe) (enginepool.Choice, error) {
	used := r
	if in.Kind == kindEvaluate {
		used = stage.Evaluating(r)
	}
	engine, err := a.Engines.Pool.Choose(ctx, used)
	if err == nil && (used == r || len(r.Engine.Servers) == 0) {
		err = Holdable(a.Worker, r, engine.Kind)
	}
	return engine, err
}

// noteEvaluates notes the measured policy in the manifest that prepares an evaluation of its own, so that a resumed
// one measures the same policy.
func noteEvaluates(in api.PrepareInput, m *schema.Manifest) error {
	if in.Kind != kindEvaluate {
		return nil
	}
	if in.Evaluates == nil {
		return badinput.Errorf("policy: name the manifest and the digest of the policy to evaluate")
	}
	text, err := json.Marshal(in.Evaluates)
	if err != nil {
		return fmt.Errorf("note the policy to evaluate: %w", err)
	}
	m.Note[schema.NoteEvaluates] = string(text)
	m.Inputs = append(m.Inputs, in.Evaluates.Manifest)
	return nil
}

// findLatest sets the policy of an evaluation that is to measure the latest one of a run: that which an earlier attempt
// has committed, or else the policy after the run's last finished step.
func (a PrepareRun) findLatest(ctx context.Context, in *api.PrepareInput, committed schema.Manifest,
	found bool) (err error) {
	if in.LatestOf == "" {
		return nil
	}
	if found {
		in.Evaluates, err = evaluates(*in, committed)
		return err
	}
	place := schema.AtInit(in.LatestOf, schema.StagePrepare)
	_, ref, prepared, err := a.Record.Lookup(ctx, place)
	if err != nil {
		return err
	}
	if !prepared {
		return badinput.Errorf("latest_of: there is no run %s", in.LatestOf)
	}
	c, err := a.Recipes.Config(ctx, ref)
	if err != nil {
		return err
	}
	of := api.Prepared{Plan: PlanOf(c.Recipe)}
	if err := a.whereToGoOn(ctx, in.LatestOf, 0, &of); err != nil {
		return err
	}
	if of.Policy == nil {
		return badinput.Errorf("latest_of: run %s has finished no step yet", in.LatestOf)
	}
	in.Evaluates = of.Policy
	return nil
}

// evaluates returns the policy that a prepared evaluation measures, nil for other runs. It refuses a workflow of
// another kind than the one that the run was prepared for, and another policy.
func evaluates(in api.PrepareInput, m schema.Manifest) (*api.PolicyRef, error) {
	text, evaluation := m.Note[schema.NoteEvaluates]
	switch {
	case evaluation != (in.Kind == kindEvaluate) && evaluation:
		return nil, badinput.Errorf("run_id: run %s is an evaluation of its own, which trains "+
			"nothing; choose another run id", in.Run)
	case evaluation != (in.Kind == kindEvaluate):
		return nil, badinput.Errorf("run_id: run %s is not an evaluation of its own; choose another run id", in.Run)
	case !evaluation:
		return nil, nil
	}
	var policy api.PolicyRef
	if err := json.Unmarshal([]byte(text), &policy); err != nil {
		return nil, fmt.Errorf("%w: %s: note %s: %w", commit.ErrDamaged, m.ManifestKey(), schema.NoteEvaluates, err)
	}
	if in.Evaluates != nil && in.Evaluates.Digest != policy.Digest {
		return nil, badinput.Errorf("run_id: run %s evaluates another policy (checkpoint %.16s, this "+
			"one is %.16s); choose another run id", in.Run, policy.Digest, in.Evaluates.Digest)
	}
	return &policy, nil
}

// measuresPinned sets the policy of an evaluation that names no manifest: the model at policy.checkpoint.
func (a PrepareRun) measuresPinned(ctx context.Context, in *api.PrepareInput, recipe *recipes.Recipe) error {
	asked, p := in.Evaluates, recipe.Policy.Pinned
	switch {
	case asked == nil || asked.Manifest != (schema.Ref{}):
		return nil
	case p == nil:
		return badinput.Errorf("policy: name the policy to evaluate, or a model as policy.checkpoint")
	case asked.Digest != "" && asked.Digest != p.Digest:
		return badinput.Errorf("policy.checkpoint: the model at %s has the digest %.16s, and the "+
			"evaluation of %.16s is asked for", recipe.Policy.Checkpoint, p.Digest, asked.Digest)
	}
	_, ref, err := a.Recipes.PinnedModel(ctx, p)
	in.Evaluates = &api.PolicyRef{Manifest: ref, Digest: p.Digest}
	return err
}

// reads refuses to evaluate a policy with another tokenizer than the recipe's prompt format needs.
func (a PrepareRun) reads(ctx context.Context, in api.PrepareInput, recipe *recipes.Recipe) error {
	if in.Evaluates == nil {
		return nil
	}
	m, err := a.Record.Read(ctx, in.Evaluates.Manifest)
	if err != nil {
		return err
	}
	if m.Checkpoint == nil || m.Checkpoint.Digest != in.Evaluates.Digest {
		return badinput.Errorf("policy: %s commits no checkpoint %.16s", in.Evaluates.Manifest.Key, in.Evaluates.Digest)
	}
	file, ok := resolver.FileOf(m, preflight.TokenizerFile)
	if !ok {
		return badinput.Errorf("policy: the checkpoint of %s has no %s", in.Evaluates.Manifest.Key,
			preflight.TokenizerFile)
	}
	if recipe.Policy.Checkpoint != "" { // speaks has tried the prompt format with that model's tokenizer
		given, err := a.Recipes.TokenizerDigest(ctx, recipe)
		if err == nil && given != file.Digest {
			err = badinput.Errorf("policy: its tokenizer is another one than that of the model at "+
				"policy.checkpoint, %s", recipe.Policy.Checkpoint)
		}
		return err
	}
	tokens, err := a.Recipes.PolicyTokenizer(ctx, *in.Evaluates, recipe)
	if err != nil {
		return err
	}
	return preflight.Reads(tokens, recipe)
}

// planEvaluation says how an evaluation of its own is made. It refuses a recipe with longer sequences than the model
// can read.
func (a PrepareRun) planEvaluation(ctx context.Context, policy *api.PolicyRef, recipe *recipes.Recipe,
) (*api.EvaluationPlan, error) {
	if policy == nil {
		return nil, nil
	}
	problems, err := a.Recipes.HeldOutTasks(ctx, recipe)
	if err != nil {
		return nil, err
	}
	plan := &api.EvaluationPlan{Problems: problems, PerShard: recipe.Evaluation.PerShard()}
	if recipe.Policy.Checkpoint != "" {
		return plan, nil // it brings its own limit
	}
	m, err := a.Record.Read(ctx, policy.Manifest)
	if err != nil {
		return nil, err
	}
	file, ok := resolver.FileOf(m, checkpoint.FileConfig)
	if !ok {
		return nil, badinput.Errorf("policy: %s has no %s", policy.Manifest.Key, checkpoint.FileConfig)
	}
	config, err := a.Record.ReadBlob(ctx, m.Checkpoint.Key(file), file.Digest)
	if err != nil {
		return nil, err
	}
	shape, err := checkpoint.ParseConfig(config)
	if err != nil {
		return nil, badinput.Errorf("policy: %v", err)
	}
	if recipe.Policy.MaxPositions <= shape.Positions {
		return plan, nil
	}
	if err := checkpoint.CanLengthen(config, recipe.Policy.MaxPositions); err != nil {
		return nil, badinput.Errorf("policy.max_positions: %v", err)
	}
	plan.Positions = recipe.Policy.MaxPositions
	return plan, nil
}
