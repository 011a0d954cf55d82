package activities

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/ropewalk/ropewalk/activities/api"
	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/schema"
)

// kindEvaluate is the kind of PrepareInput that asks for an evaluation of its own.
const kindEvaluate = "evaluate"

// noteEvaluates notes the measured policy in the manifest that prepares an evaluation of its own, so that a resumed
// one measures the same policy.
func noteEvaluates(in api.PrepareInput, m *schema.Manifest) error {
	if in.Kind != kindEvaluate {
		return nil
	}
	if in.Evaluates == nil {
		return refuse(api.FailBadInput, "policy: name the manifest and the digest of the policy to evaluate")
	}
	text, err := json.Marshal(in.Evaluates)
	if err != nil {
		return fmt.Errorf("note the policy to evaluate: %w", err)
	}
	m.Note[schema.NoteEvaluates] = string(text)
	m.Inputs = append(m.Inputs, in.Evaluates.Manifest)
	return nil
}

// evaluates returns the policy that a prepared evaluation measures, nil for other runs. It refuses a workflow of
// another kind than the one that the run was prepared for, and another policy.
func evaluates(in api.PrepareInput, m schema.Manifest) (*api.PolicyRef, error) {
	text, evaluation := m.Note[schema.NoteEvaluates]
	switch {
	case evaluation != (in.Kind == kindEvaluate) && evaluation:
		return nil, refuse(api.FailBadInput, "run_id: run %s is an evaluation of its own, which trains nothing; "+
			"choose another run id", in.Run)
	case evaluation != (in.Kind == kindEvaluate):
		return nil, refuse(api.FailBadInput, "run_id: run %s is not an evaluation of its own; choose another run id",
			in.Run)
	case !evaluation:
		return nil, nil
	}
	var policy api.PolicyRef
	if err := json.Unmarshal([]byte(text), &policy); err != nil {
		return nil, fmt.Errorf("%w: %s: note %s: %w", commit.ErrDamaged, m.ManifestKey(), schema.NoteEvaluates, err)
	}
	if in.Evaluates != nil && in.Evaluates.Digest != policy.Digest {
		return nil, refuse(api.FailBadInput, "run_id: run %s evaluates another policy (checkpoint %.16s, this one is "+
			"%.16s); choose another run id", in.Run, policy.Digest, in.Evaluates.Digest)
	}
	return &policy, nil
}

// reads refuses to evaluate a policy whose tokenizer is not the one of the recipe. The fixed strings of a prompt format
// are tokens of their own, so a policy can be evaluated only in formats that have those that it was trained with.
func (a PrepareRun) reads(ctx context.Context, in api.PrepareInput, recipe *recipes.Recipe) error {
	if in.Evaluates == nil {
		return nil
	}
	m, err := a.Record.Read(ctx, in.Evaluates.Manifest)
	if err != nil {
		return err
	}
	if m.Checkpoint == nil || m.Checkpoint.Digest != in.Evaluates.Digest {
		return refuse(api.FailBadInput, "policy: %s commits no checkpoint %.16s", in.Evaluates.Manifest.Key,
			in.Evaluates.Digest)
	}
	tokens, err := a.tokenizer(recipe)
	if err != nil {
		return err
	}
	text := tokens.Files()[tokenizerFile]
	for _, f := range m.Checkpoint.Files {
		if f.Name == tokenizerFile && f.Digest != schema.Digest(text) {
			return refuse(api.FailBadInput, "environment.name: the policy was trained with another tokenizer than the "+
				"prompt format of %s has; name an environment or a rollout.protocol with the same fixed strings",
				recipe.Environment.Name)
		}
	}
	return nil
}

// tokenizerFile is the file of a checkpoint that holds its vocabulary.
const tokenizerFile = "tokenizer.json"
