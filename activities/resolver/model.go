package resolver

import (
	"context"
	"fmt"

	"github.com/ropewalk/ropewalk/activities/record"
	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/internal/planning"
	"github.com/ropewalk/ropewalk/internal/pretrained"
	"github.com/ropewalk/ropewalk/internal/refusal"
	"github.com/ropewalk/ropewalk/policy/checkpoint"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/schema"
)

// modelsKept bounds the models whose tokenizers a worker remembers.
const modelsKept = 8

// model returns what a run needs of its pinned model besides the weights.
func (r *Recipes) model(ctx context.Context, recipe *recipes.Recipe) (*pretrained.Model, error) {
	p := recipe.Policy.Pinned
	if p == nil {
		return nil, badinput.Errorf("policy.checkpoint: the model at %s is not taken into the store "+
			"yet", recipe.Policy.Checkpoint)
	}
	if m, ok := r.models.find(p.Inputs); ok {
		return m, nil
	}
	manifest, _, err := r.PinnedModel(ctx, p)
	if err != nil {
		return nil, err
	}
	files, err := SmallFiles(ctx, r.Records, *manifest.Checkpoint)
	if err != nil {
		return nil, err
	}
	m, err := pretrained.Read(files)
	if err != nil {
		return nil, badinput.Errorf("policy.checkpoint: %v", err)
	}
	r.models.put(p.Inputs, &m)
	return &m, nil
}

// PinnedModel finds the manifest that holds a pinned model.
func (r *Recipes) PinnedModel(ctx context.Context, p *recipes.Pinned) (schema.Manifest, schema.Ref, error) {
	m, ref, found, err := r.Records.Record.Lookup(ctx, schema.AtWarmStart(p.Inputs))
	if err != nil {
		return m, ref, err
	}
	if !found || m.Checkpoint == nil || m.Checkpoint.Digest != p.Digest {
		return m, ref, refusal.Corruptf("policy.pinned: %s holds no model of digest %s",
			schema.AtWarmStart(p.Inputs).ManifestKey(), p.Digest)
	}
	return m, ref, nil
}

// SmallFiles reads a checkpoint's configuration and tokenizer.
func SmallFiles(ctx context.Context, r record.Records, c schema.Checkpoint) (map[string][]byte, error) {
	wanted := map[string]bool{}
	for _, name := range pretrained.Small() {
		wanted[name] = true
	}
	out := map[string][]byte{}
	for _, f := range c.Files {
		if !wanted[f.Name] {
			continue
		}
		data, err := r.Record.ReadBlob(ctx, c.Key(f), f.Digest)
		if err != nil {
			return nil, fmt.Errorf("checkpoint file %s: %w", f.Name, err)
		}
		out[f.Name] = data
	}
	return out, nil
}

// TokenizerDigest identifies the tokenizer of a recipe's policy by its file.
func (r *Recipes) TokenizerDigest(ctx context.Context, recipe *recipes.Recipe) (string, error) {
	const name = "tokenizer.json"
	if p := recipe.Policy.Pinned; p != nil {
		m, _, err := r.PinnedModel(ctx, p)
		if err != nil {
			return "", err
		}
		for _, f := range m.Checkpoint.Files {
			if f.Name == name {
				return f.Digest, nil
			}
		}
		return "", fmt.Errorf("%s has no %s", m.Checkpoint.Prefix, name)
	}
	t, err := r.Tokenizer(recipe)
	if err != nil {
		return "", err
	}
	return schema.Digest(t.Files()[name]), nil
}

// SmallModel reads a checkpoint's configuration and tokenizer, unless this worker remembers them.
func (r *Recipes) SmallModel(ctx context.Context, c schema.Checkpoint) (*pretrained.Model, error) {
	key := "checkpoint " + c.Digest
	if m, ok := r.models.find(key); ok {
		return m, nil
	}
	files, err := SmallFiles(ctx, r.Records, c)
	if err != nil {
		return nil, err
	}
	m, err := pretrained.Read(files)
	if err != nil {
		return nil, err
	}
	r.models.put(key, &m)
	return &m, nil
}

// Shape returns the sizes of the model that a recipe trains.
func (r *Recipes) Shape(recipe *recipes.Recipe) (checkpoint.Shape, error) {
	if shape, known, err := recipe.Policy.Shape(); known || err != nil {
		return shape, err
	}
	tokens, err := r.Tokenizer(recipe)
	if err != nil {
		return checkpoint.Shape{}, err
	}
	return planning.NewShape(recipe.Policy, tokens)
}
