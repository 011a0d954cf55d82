package runs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/internal/hub"
	"github.com/ropewalk/ropewalk/internal/preflight"
	"github.com/ropewalk/ropewalk/internal/pretrained"
	"github.com/ropewalk/ropewalk/policy/checkpoint"
)

// Model is a model that policy.checkpoint can name. The worker that prepares an evaluation takes it into the store.
type Model struct {
	address   string
	digest    string // "" if only the worker reads it
	positions int    // 0 if only the worker knows
	rewrites  bool   // its chat template writes earlier turns differently; false if only the worker knows
}

// IsModel reports whether an argument is the address of a model, and neither a folder nor a run: hf:// or s3://, or a
// GGUF file.
func IsModel(arg string) bool { return strings.Contains(arg, "://") || strings.HasSuffix(arg, ".gguf") }

// OpenModel finds a model by a path, by an address, or by its name in the folder of models, and checks those that are
// on this machine. A branch of a hub's model is the commit that it names now.
func OpenModel(ctx context.Context, address, models string) (Model, error) {
	scheme, rest, addressed := strings.Cut(address, "://")
	if addressed {
		return openAddress(ctx, address, scheme, rest)
	}
	path, err := filepath.Abs(address)
	if err != nil {
		return Model{}, err
	}
	m := Model{address: path}
	if _, missing := os.Stat(path); missing != nil && filepath.IsLocal(address) && models != "" {
		m.address, path = address, filepath.Join(models, address)
	}
	if err := m.read(path); err != nil {
		return m, badinput.Errorf("%s: %w", address, err)
	}
	return m, nil
}

func openAddress(ctx context.Context, address, scheme, rest string) (m Model, err error) {
	m = Model{address: address}
	switch scheme {
	case "s3":
		_, _, err = pretrained.ParseBucket(rest)
	case "hf":
		var repository, revision string
		if repository, revision, err = hub.Parse(rest); err != nil || hub.IsCommit(revision) {
			break
		}
		snapshot, asked := hub.Here("").Resolve(ctx, repository, revision)
		if err = asked; err == nil {
			m.address = "hf://" + repository + "@" + snapshot.Commit
		} else if errors.Is(err, hub.ErrUnreachable) {
			err = nil // the worker looks in the store
		}
	default:
		err = errors.New("want a path, hf://, s3://, URL#NAME of a hosted model, or RUN[@STEP]")
	}
	if err != nil {
		return m, badinput.Errorf("%s: %w", address, err)
	}
	return m, nil
}

// read reads what a folder or GGUF file holds next to its weights, and the digest of all.
func (m *Model) read(path string) error {
	dir, err := os.MkdirTemp("", "ropewalk-model-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	folder := filepath.Join(dir, "checkpoint")
	if err := pretrained.Take(path, folder); err != nil {
		return err
	}
	found, err := pretrained.Describe(folder)
	if err != nil {
		return err
	}
	m.positions, m.rewrites = found.Shape.Positions, preflight.Rewrites(&found)
	m.digest, err = checkpoint.Digest(folder)
	return err
}

// mostTokens is the longest episode of a model whose recipe does not say it.
const mostTokens = 4096

// Evaluation describes an evaluation of the model, under a base's recipe or with an environment's defaults.
func (m Model) Evaluation(base json.RawMessage) (Evaluation, error) {
	out := map[string]any{}
	if base != nil {
		if err := json.Unmarshal(base, &out); err != nil {
			return Evaluation{}, fmt.Errorf("decode the recipe: %w", err)
		}
		delete(out, "tokenizer")
	} else {
		n := mostTokens
		if m.positions > 0 {
			n = min(n, m.positions)
		}
		out = defaults(n)
	}
	out["policy"] = map[string]any{"checkpoint": m.address}
	e := Evaluation{Of: filepath.Base(m.address), Recipe: out, Fresh: true, Checkpoint: true,
		Rewrites: m.rewrites}
	e.Policy.Digest = m.digest
	return e, nil
}

// defaults are the sections of a recipe for a model without one, whose episodes have at most n tokens. No stage of an
// evaluation reads the steps and the optimiser.
func defaults(n int) map[string]any {
	return map[string]any{"version": 1, "name": "evaluate", "seed": 1, "steps": 1,
		"optimizer": map[string]any{"lr": 0.001}, "rollout": map[string]any{"max_tokens": n,
			"max_turn_tokens": min(n, usualTurnTokens), "prompts": 8, "samples_per_prompt": 1}}
}
