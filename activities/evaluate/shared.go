package evaluate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"

	"github.com/ropewalk/ropewalk/activities/stage"
	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store"
)

// sharedInputs is everything that the rows of an evaluation of a first policy follow from. Its digest is in the key of
// the note by which other runs find the evaluation.
type sharedInputs struct {
	Recipe  json.RawMessage    `json:"recipe"` // of sampledBy
	Stage   string             `json:"stage"`
	Tag     string             `json:"tag"`
	Policy  string             `json:"policy"` // digest of the checkpoint
	Code    string             `json:"code"`   // digest of the program
	Machine policy.Description `json:"machine"`
}

// sampledBy returns the recipe without the fields that only rollouts, batches and updates read. First policies are
// evaluated by it, so that no other field can influence the rows.
func sampledBy(r *recipes.Recipe) *recipes.Recipe {
	out := *r
	out.Name, out.Description, out.Steps, out.Evaluation.Every = "", "", 0, 0
	out.Rollout.Mode, out.Rollout.Prompts, out.Rollout.SamplesPerPrompt, out.Rollout.ShardGroups = "", 0, 0, 0
	out.Rollout.Temperature, out.Rollout.Tree = 0, nil
	out.Filters, out.Resample, out.Advantage = recipes.Filters{}, recipes.Resample{}, recipes.Advantage{}
	out.Loss, out.Optimizer, out.Replay, out.Pipeline = recipes.Loss{}, recipes.Optimizer{}, nil, nil
	out.Checkpoint, out.Record, out.TokenOutputs = recipes.Checkpoint{}, recipes.Record{}, nil
	return &out
}

// digest returns the digest of the inputs with a recipe of sampledBy. It is "" if the recipe names programs or secrets:
// what these do can change while the recipe stays the same.
func (s sharedInputs) digest(r *recipes.Recipe) (string, error) {
	if len(r.Privileged()) > 0 {
		return "", nil
	}
	text, err := r.Canonical()
	if err != nil {
		return "", err
	}
	s.Recipe, s.Machine.Advice = text, "" // advice does not affect the rows
	text, err = schema.Canonical(s)
	return schema.Digest(text), err
}

// Shared identifies the evaluation of a recipe's first policy on one machine: runs of recipes with equal texts share
// it. It is "" if runs do not share it.
func Shared(r *recipes.Recipe) (string, error) { return sharedInputs{}.digest(sampledBy(r)) }

// share copies the evaluation that an earlier run with the same inputs has committed; shared is false if there is none.
// Then note is the key of the note about the one that this run makes, or "" if runs do not share it.
func (a Evaluate) share(ctx context.Context, w *stage.Draft, in api.EvaluateInput, out *api.Evaluated,
) (note string, shared bool, err error) {
	first, err := a.Record.Read(ctx, in.Policy.Manifest)
	if err != nil {
		return "", false, err
	}
	sampler, err := w.Sampler(ctx, in.Scope, stage.Evaluating(w.Recipe)) // an engine opens with all fields
	if err != nil {
		return "", false, err
	}
	w.Recipe = sampledBy(w.Recipe)
	inputs, err := sharedInputs{Stage: w.Place.Stage, Tag: in.Tag, Policy: in.Policy.Digest, Code: a.Code,
		Machine: sampler.Describe()}.digest(w.Recipe)
	if err != nil || inputs == "" {
		return "", false, err
	}
	note, ok := first.EvaluationKey(inputs)
	if !ok {
		return "", false, nil
	}
	made, shared, err := a.findShared(ctx, note)
	if err == nil && shared {
		err = w.Copy(ctx, made, out)
	}
	if errors.Is(err, commit.ErrDamaged) {
		slog.WarnContext(ctx, "an earlier run's evaluation cannot be read: it is made again", "note", note,
			"error", err)
		return note, false, nil
	}
	return note, shared, err
}

// findShared finds the evaluation that a note names; found is false if there is no note, or its run was deleted.
func (a Evaluate) findShared(ctx context.Context, note string) (m schema.Manifest, found bool, err error) {
	text, err := a.Store.Get(ctx, note)
	if errors.Is(err, store.ErrNotFound) {
		return m, false, nil
	}
	if err != nil {
		return m, false, fmt.Errorf("look for a shared evaluation: %w", err)
	}
	var noted, ref schema.Ref
	var place schema.Place
	if err = json.Unmarshal(text, &noted); err == nil {
		place, err = schema.ParseManifestKey(noted.Key)
	}
	if err != nil {
		return m, false, fmt.Errorf("%w: %s: %w", commit.ErrDamaged, note, err)
	}
	m, ref, found, err = a.Record.Lookup(ctx, place)
	return m, found && ref == noted, err
}

// noteShared notes an evaluation for the runs that share it. It replaces the note about one that is gone.
func (a Evaluate) noteShared(ctx context.Context, note string, ref schema.Ref) error {
	text, err := schema.Canonical(ref)
	if err == nil {
		err = a.Store.Put(ctx, note, text)
	}
	if err != nil {
		return fmt.Errorf("note %s for other runs: %w", ref.Key, err)
	}
	return nil
}
