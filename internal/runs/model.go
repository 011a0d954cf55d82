package runs

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/ropewalk/ropewalk/internal/preflight"
)

// Model is a model that policy.checkpoint can name. The worker that prepares an evaluation takes it into the store.
type Model preflight.Model

// IsModel reports whether an argument is the address of a model, and neither a folder nor a run: hf:// or s3://, or a
// GGUF file.
func IsModel(arg string) bool { return strings.Contains(arg, "://") || strings.HasSuffix(arg, ".gguf") }

// OpenModel finds a model and checks it, as preflight.OpenModel does.
func OpenModel(ctx context.Context, address, models string) (Model, error) {
	m, err := preflight.OpenModel(ctx, address, models)
	return Model(m), err
}

// mostTokens is the longest episode of a model whose recipe does not say it.
const mostTokens = 4096

// Evaluation describes an evaluation of the model, under a base's recipe or with an environment's defaults.
func (m Model) Evaluation(base json.RawMessage) (Evaluation, error) {
	out, err := recipeOf(base, min(mostTokens, cmp.Or(m.Positions, mostTokens)))
	if err != nil {
		return Evaluation{}, err
	}
	delete(out, "tokenizer")
	out["policy"] = map[string]any{"checkpoint": m.Address}
	e := Evaluation{Of: filepath.Base(m.Address), Recipe: out, Fresh: true, Checkpoint: true, Rewrites: m.Rewrites}
	e.Policy.Digest = m.Digest
	return e, nil
}

// recipeOf decodes the recipe of a base. Without one it returns the sections of a recipe whose episodes have at most n
// tokens.
func recipeOf(base json.RawMessage, n int) (out map[string]any, err error) {
	if base == nil {
		return defaults(n), nil
	}
	if err := json.Unmarshal(base, &out); err != nil {
		return nil, fmt.Errorf("decode the recipe: %w", err)
	}
	return out, nil
}

// defaults are the sections of a recipe for a model without one, whose episodes have at most n tokens. No stage of an
// evaluation reads the steps and the optimiser.
func defaults(n int) map[string]any {
	return map[string]any{"version": 1, "name": "evaluate", "seed": 1, "steps": 1,
		"optimizer": map[string]any{"lr": 0.001}, "rollout": map[string]any{"max_tokens": n,
			"max_turn_tokens": min(n, usualTurnTokens), "prompts": 8, "samples_per_prompt": 1}}
}
