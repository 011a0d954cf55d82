// Package record finds what runs have committed to the store of a worker. It needs no recipe, engine or sandbox.
//
// Glossary. The manifests of a shard's turns and tool calls form a *chain*: each names the one before it. A shard's
// *past* is the end of its chain.
package record

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store"
)

// Records finds what runs have committed. Its methods need nothing but the record: no recipe, engine or sandbox.
type Records struct {
	// Store holds the record, and Record reads and commits manifests and shards in it.
	Store  store.Store
	Record *commit.Writer
}

// StatSuccess is the sampled success rate in an evaluation's manifest; keep_best compares it.
const StatSuccess = "success"

// Manifests reads manifests by their refs.
func (r Records) Manifests(ctx context.Context, refs []schema.Ref) ([]schema.Manifest, error) {
	out := make([]schema.Manifest, len(refs))
	for i, ref := range refs {
		var err error
		if out[i], err = r.Record.Read(ctx, ref); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// StageShards returns a stage manifest and its shards in order, either its own or those of its parts.
func (r Records) StageShards(ctx context.Context, ref schema.Ref) (schema.Manifest, []schema.ShardInfo, error) {
	m, err := r.Record.Read(ctx, ref)
	if err != nil {
		return m, nil, err
	}
	parts, err := r.Record.Parts(ctx, m)
	if err != nil {
		return m, nil, err
	}
	shards := m.Shards
	for _, p := range parts {
		shards = append(shards, p.Shards...)
	}
	return m, shards, nil
}

// MadeFrom returns the manifests of a stage that the shards of a stage manifest name as their inputs.
func (r Records) MadeFrom(ctx context.Context, ref schema.Ref, stage string) ([]schema.Ref, error) {
	m, err := r.Record.Read(ctx, ref)
	if err != nil {
		return nil, err
	}
	parts, err := r.Record.Parts(ctx, m)
	if err != nil {
		return nil, err
	}
	var out []schema.Ref
	for _, part := range append(parts, m) {
		for _, input := range part.Inputs {
			if IsOfStage(input, stage) && !slices.Contains(out, input) {
				out = append(out, input)
			}
		}
	}
	return out, nil
}

// CommitHead commits a head that names the manifests of a step; if there is a head already, that head stays.
func (r Records) CommitHead(ctx context.Context, scope api.Scope, named []api.StageRef) error {
	refs := make([]schema.Ref, len(named))
	for i, s := range named {
		refs[i] = s.Ref
	}
	head, err := schema.NewHead(scope.Run, strconv.Itoa(scope.Step), refs...)
	if err != nil {
		return err
	}
	_, _, _, err = r.Record.CommitHead(ctx, head)
	return err
}

// MadeUnder returns the manifest of the recipe under which a manifest was made: its first input.
func MadeUnder(m schema.Manifest) (schema.Ref, error) {
	if len(m.Inputs) == 0 {
		return schema.Ref{}, fmt.Errorf("%w: %s names no recipe among its inputs", commit.ErrDamaged, m.ManifestKey())
	}
	return m.Inputs[0], nil
}

// IsOfStage reports whether a ref names a manifest of a stage.
func IsOfStage(ref schema.Ref, stage string) bool {
	p, err := schema.ParseManifestKey(ref.Key)
	return err == nil && p.Stage == stage
}

// OfStage returns the manifests of a stage, in order.
func OfStage(manifests []schema.Manifest, stage string) []schema.Manifest {
	var out []schema.Manifest
	for _, m := range manifests {
		if m.Stage == stage {
			out = append(out, m)
		}
	}
	return out
}

// ReadsOnly reports whether each input was made by one of the stages.
func ReadsOnly(inputs []schema.Ref, stages ...string) bool {
	for _, ref := range inputs {
		if !slices.ContainsFunc(stages, func(stage string) bool { return IsOfStage(ref, stage) }) {
			return false
		}
	}
	return true
}

// Read returns the rows of a table behind manifests; it follows the parts of stage manifests.
func Read[R schema.Row](ctx context.Context, r Records, refs ...schema.Ref) ([]R, error) {
	manifests, err := r.Manifests(ctx, refs)
	if err != nil {
		return nil, err
	}
	return commit.Rows[R](ctx, r.Record, manifests...)
}

// NoteDeed writes a note. id and the note's time tell it from all others of the run.
func (r Records) NoteDeed(ctx context.Context, run string, deed schema.Deed, id string) error {
	text, err := schema.Canonical(deed)
	if err != nil {
		return err
	}
	err = r.Store.PutIfAbsent(ctx, schema.DeedKey(run, deed, id), text)
	if err != nil && !errors.Is(err, store.ErrExists) {
		return fmt.Errorf("note who asks for %s of run %s: %w", deed.Action, run, err)
	}
	return nil
}

// NoteState notes how a run is. A note that is there stays.
func (r Records) NoteState(ctx context.Context, run string, note schema.StateNote) error {
	text, err := schema.Canonical(note)
	if err != nil {
		return err
	}
	err = r.Store.PutIfAbsent(ctx, schema.StateKey(run, note), text)
	if err != nil && !errors.Is(err, store.ErrExists) {
		return fmt.Errorf("note that run %s is %s: %w", run, note.State, err)
	}
	return nil
}
