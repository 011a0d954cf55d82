package analysis

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/internal/rescue"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store"
)

// StepCheckpoint is the policy after a finished step, or the one that the first step began with.
type StepCheckpoint struct {
	Step int // 0 before the first step
	schema.Checkpoint
	Manifest schema.Ref `json:"-"` // of the stage that made it
	Pruned   bool       // its files were deleted on purpose
	// Success is its sampled success on held-out problems; nil if it was not evaluated.
	Success *float64
}

// Checkpoints lists the policies of a run, in the order of their steps: the one of the warm start, and that of each
// step with a head. An import has none.
func (v *Visible) Checkpoints(ctx context.Context) ([]StepCheckpoint, error) {
	found, err := v.Policies(ctx)
	if err != nil {
		return nil, err
	}
	evaluations, err := v.evaluations(ctx, 0)
	if err != nil {
		return nil, err
	}
	success := map[int]*float64{}
	for _, e := range evaluations {
		success[max(e.Step, 0)] = &e.Summary.Success
	}
	err = rescue.Each(ctx, fetches, len(found), func(ctx context.Context, i int) error {
		c := &found[i]
		c.Success = success[c.Step]
		_, err := v.record.objects.Get(ctx, c.Prefix+schema.PrunedFile)
		c.Pruned = err == nil
		if errors.Is(err, store.ErrNotFound) {
			return nil
		}
		return err
	})
	return found, err
}

// Policies returns the checkpoints that the warm start and the heads name, in the order of their steps. It does not say
// which are pruned, nor how they were evaluated.
func (v *Visible) Policies(ctx context.Context) ([]StepCheckpoint, error) {
	var out []StepCheckpoint
	first, ref, found, err := v.record.writer.Lookup(ctx, schema.AtInit(v.run, schema.StageWarmStart))
	if err != nil {
		return nil, err
	}
	if found && first.Checkpoint != nil {
		out = append(out, StepCheckpoint{Checkpoint: *first.Checkpoint, Manifest: ref})
	}
	var refs []schema.Ref
	for _, h := range v.heads {
		refs = append(refs, h.Stages[schema.StageUpdate]...)
	}
	updates, err := v.record.readAll(ctx, refs)
	if err != nil {
		return nil, err
	}
	for i, m := range updates {
		if m.Checkpoint == nil {
			return nil, fmt.Errorf("%w: %s names no checkpoint", commit.ErrDamaged, m.ManifestKey())
		}
		out = append(out, StepCheckpoint{Step: placed(m), Checkpoint: *m.Checkpoint, Manifest: refs[i]})
	}
	return out, nil
}

// FetchCheckpoint writes the wanted files of a checkpoint into the folder dir, each checked against its digest. It
// holds only a small part of a file in memory.
func (r *Record) FetchCheckpoint(ctx context.Context, c schema.Checkpoint, dir string, want func(name string) bool,
) error {
	for _, f := range c.Files {
		if !want(f.Name) {
			continue
		}
		if err := r.writer.FetchFile(ctx, c.Key(f), f.Digest, f.Bytes, filepath.Join(dir, f.Name)); err != nil {
			return fmt.Errorf("checkpoint file %s: %w", f.Name, err)
		}
	}
	return nil
}
