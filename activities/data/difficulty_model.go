package data

import (
	"context"
	"fmt"
	"strconv"

	"github.com/ropewalk/ropewalk/activities/stage"
	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/internal/enginepool"
	"github.com/ropewalk/ropewalk/internal/preflight"
	"github.com/ropewalk/ropewalk/internal/refusal"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/schema"
)

// answerer finds the model that answers the training tasks, and notes it in the draft. The manifest of the reference is
// zero if the draft's own manifest commits the model, because the model is a folder.
func (a SelectCandidates) answerer(ctx context.Context, w *stage.Draft, in api.Scope) (out api.PolicyRef, err error) {
	d, model := w.Recipe.Data.Difficulty, schema.Checkpoint{}
	run, step, err := d.Answerer()
	switch {
	case err != nil:
		return out, badinput.Errorf("data.difficulty: %v", err)
	case run == in.Run:
		return out, badinput.Errorf("data.difficulty.model: %s is this run", run)
	case run != "":
		model, out, err = a.policyOf(ctx, run, step)
	default:
		model, err = enginepool.StoreFolder(ctx, a.Record, d.Folder(), a.Engines.Scratch, w.Place)
		if err != nil && ctx.Err() == nil {
			err = badinput.Errorf("data.difficulty.model: %s: %v", d.Folder(), err)
		}
		w.Manifest.Checkpoint, out.Digest = &model, model.Digest
	}
	if err != nil {
		return out, err
	}
	if d.Weights != "" && d.Weights != model.Weights {
		return out, badinput.Errorf("data.difficulty.weights: the weights digest of %s is %s", d.Model, model.Weights)
	}
	if err := a.readsTokens(w.Recipe, model); err != nil {
		return out, err
	}
	w.Manifest.Note["model"], w.Manifest.Note["model_checkpoint"] = d.Model, model.Digest
	if model.Weights != "" { // records of early versions do not have it
		w.Manifest.Note["model_weights"] = model.Weights
	}
	if out.Manifest != (schema.Ref{}) {
		w.Manifest.Inputs = append(w.Manifest.Inputs, out.Manifest)
	}
	return out, nil
}

// policyOf finds the policy of another run after a step.
func (a SelectCandidates) policyOf(ctx context.Context, run string, step int) (schema.Checkpoint, api.PolicyRef,
	error) {
	none := schema.Checkpoint{}
	if step == recipes.LatestPolicy {
		var err error
		if step, err = a.LastStep(ctx, run); err != nil {
			return none, api.PolicyRef{}, err
		}
	}
	ref, err := a.updateOf(ctx, run, step)
	if err != nil {
		return none, api.PolicyRef{}, err
	}
	m, err := a.Record.Read(ctx, ref)
	if err != nil {
		return none, api.PolicyRef{}, err
	}
	if m.Checkpoint == nil {
		return none, api.PolicyRef{}, refusal.Corruptf("data.difficulty.model: %s commits no checkpoint", ref.Key)
	}
	listed, err := a.Store.List(ctx, m.Checkpoint.Prefix+schema.PrunedFile)
	if err != nil {
		return none, api.PolicyRef{}, fmt.Errorf("look for %s: %w", m.Checkpoint.Prefix, err)
	}
	if len(listed) > 0 {
		return none, api.PolicyRef{}, badinput.Errorf("data.difficulty.model: run %s has pruned the "+
			"policy after step %d; `ropewalk show %s` lists those that are kept", run, step, run)
	}
	return *m.Checkpoint, api.PolicyRef{Manifest: ref, Digest: m.Checkpoint.Digest, Step: step}, nil
}

// updateOf returns the manifest that commits a run's policy after a step.
func (a SelectCandidates) updateOf(ctx context.Context, run string, step int) (schema.Ref, error) {
	if step == 0 {
		_, ref, found, err := a.Record.Lookup(ctx, schema.AtInit(run, schema.StageWarmStart))
		if err == nil && !found {
			err = badinput.Errorf("data.difficulty.model: run %s has no policy in %s", run, a.Store)
		}
		return ref, err
	}
	head, _, found, err := a.Record.Head(ctx, run, strconv.Itoa(step))
	if err != nil {
		return schema.Ref{}, err
	}
	refs := head.Stages[schema.StageUpdate]
	if !found || len(refs) == 0 {
		return schema.Ref{}, badinput.Errorf("data.difficulty.model: run %s has not finished step %d "+
			"in %s", run, step, a.Store)
	}
	return refs[0], nil
}

// readsTokens refuses a model with another tokenizer than the recipe's.
func (a SelectCandidates) readsTokens(recipe *recipes.Recipe, model schema.Checkpoint) error {
	tokens, err := a.Recipes.Tokenizer(recipe)
	if err != nil {
		return err
	}
	want := schema.Digest(tokens.Files()[preflight.TokenizerFile])
	for _, f := range model.Files {
		if f.Name == preflight.TokenizerFile && f.Digest == want {
			return nil
		}
	}
	return badinput.Errorf("data.difficulty.model: the model has another tokenizer than the prompt " +
		"format of this recipe; its run must have the same environment, protocol and tools")
}
