package resolver

import (
	"context"
	"slices"

	"github.com/ropewalk/ropewalk/internal/preflight"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/policy/tokenizer"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/schema"
)

// PolicyTokenizer returns the tokenizer of an evaluated policy. It is the recipe's if both have the same file.
func (r *Recipes) PolicyTokenizer(ctx context.Context, policy api.PolicyRef, recipe *recipes.Recipe) (tokenizer.Codec,
	error) {
	m, err := r.Records.Record.Read(ctx, policy.Manifest)
	if err != nil {
		return nil, err
	}
	file, ok := FileOf(m, preflight.TokenizerFile)
	if !ok { // prepare refuses such a policy of another run
		return r.codec(recipe)
	}
	switch {
	case recipe.Policy.Checkpoint != "":
		given, err := r.TokenizerDigest(ctx, recipe)
		if err != nil {
			return nil, err
		}
		if given == file.Digest {
			return r.codec(recipe)
		}
	case recipe.Tokenizer == nil: // training one only to compare it would take a second
		ours, err := r.Tokenizer(recipe)
		if err != nil {
			return nil, err
		}
		if schema.Digest(ours.Files()[preflight.TokenizerFile]) == file.Digest {
			return ours, nil
		}
	}
	if t, ok := r.theirs.find(file.Digest); ok {
		return t, nil
	}
	t, err := preflight.Tokenizer(m, func(key, digest string) ([]byte, error) {
		return r.Records.Record.ReadBlob(ctx, key, digest)
	})
	if err != nil {
		return nil, err
	}
	r.theirs.put(file.Digest, t)
	return t, nil
}

// FileOf returns a file of the checkpoint that a manifest commits.
func FileOf(m schema.Manifest, name string) (schema.CheckpointFile, bool) {
	if m.Checkpoint == nil {
		return schema.CheckpointFile{}, false
	}
	i := slices.IndexFunc(m.Checkpoint.Files, func(f schema.CheckpointFile) bool { return f.Name == name })
	if i < 0 {
		return schema.CheckpointFile{}, false
	}
	return m.Checkpoint.Files[i], true
}
