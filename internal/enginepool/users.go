package enginepool

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync"

	"github.com/ropewalk/ropewalk/internal/trace"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/checkpoint"
	"github.com/ropewalk/ropewalk/schema"
)

// Sampler is a resident engine that generates.
type Sampler struct {
	*Resident
	sampler policy.Sampler
	// shared lets users of one version generate at once; nil: they take turns.
	shared *sync.RWMutex
	// stream generates single rows; nil: no one generates any here, or shared lets them.
	stream *stream
}

// Engine returns the sampler itself, for questions about it.
func (s *Sampler) Engine() policy.Sampler { return s.sampler }

// Use runs fn with a version of the policy published.
func (s *Sampler) Use(ctx context.Context, v Version, fn func(policy.Sampler) error) error {
	if s.shared != nil {
		_, span := trace.Start(ctx, sampleSpan)
		defer func() { span.End("", slog.String("device", s.Describe().Device)) }()
		return s.useShared(ctx, v, fn)
	}
	defer s.lock()()
	defer s.works(ctx, "sample")()
	return s.within(ctx, policy.RolePolicy, v, false, func() error { return fn(s.sampler) })
}

// UseWith is Use with a second version published under RoleReference, unless that is the zero Version.
func (s *Sampler) UseWith(ctx context.Context, v, reference Version, fn func(policy.Sampler) error) error {
	return s.Use(ctx, v, func(sampler policy.Sampler) error {
		if reference == (Version{}) {
			return fn(sampler)
		}
		return s.within(ctx, policy.RoleReference, reference, false, func() error { return fn(sampler) })
	})
}

// UseReference runs fn with a version published under RoleReference. What is published under RolePolicy stays.
func (s *Sampler) UseReference(ctx context.Context, v Version, fn func(policy.Sampler) error) error {
	defer s.lock()()
	return s.within(ctx, policy.RoleReference, v, false, func() error { return fn(s.sampler) })
}

// Trainer is a resident engine that trains.
type Trainer struct {
	*Resident
	trainer policy.Trainer
}

// Use runs fn with a version resident under a role, with its optimiser's state if optimizer is set.
func (t *Trainer) Use(ctx context.Context, role policy.Role, v Version, optimizer bool,
	fn func(policy.Trainer) error) error {
	defer t.lock()()
	defer t.works(ctx, "train")()
	return t.Within(ctx, role, v, optimizer, fn)
}

// UseReset is Use of the policy for an update that starts without the optimiser's state, whatever is resident.
func (t *Trainer) UseReset(ctx context.Context, v Version, fn func(policy.Trainer) error) error {
	defer t.lock()()
	t.Forget(policy.RolePolicy)
	defer t.works(ctx, "train")()
	return t.Within(ctx, policy.RolePolicy, v, false, fn)
}

// Within is Use for callers inside Use or Exclusive.
func (t *Trainer) Within(ctx context.Context, role policy.Role, v Version, optimizer bool,
	fn func(policy.Trainer) error) error {
	return t.within(ctx, role, v, optimizer, func() error { return fn(t.trainer) })
}

// Exclusive runs fn while no other stage uses the engine.
func (t *Trainer) Exclusive(fn func(policy.Trainer) error) error {
	defer t.lock()()
	return t.noteLoss(fn(t.trainer))
}

// Save stores the model resident under a role, under a prefix of the slot, and returns the checkpoint for the
// manifest. Without the optimiser's state, the next load starts AdamW from zero. before is the checkpoint that an
// update started with: if it holds the base of an adapter, the base is not stored again.
func (t *Trainer) Save(ctx context.Context, role policy.Role, place schema.Place, step int, optimizer bool,
	before *schema.Checkpoint) (schema.Checkpoint, error) {
	none := schema.Checkpoint{}
	dir, err := os.MkdirTemp(t.scratch, "save-")
	if err != nil {
		return none, fmt.Errorf("make a folder for a checkpoint: %w", err)
	}
	defer os.RemoveAll(dir)
	digest, err := t.trainer.Save(ctx, role, dir)
	if err != nil {
		return none, fmt.Errorf("save the %s: %w", role, err)
	}
	if !optimizer {
		if err := checkpoint.DropOptimizer(dir); err != nil {
			return none, err
		}
		if digest, err = checkpoint.Digest(dir); err != nil {
			return none, err
		}
	}
	shared, err := sharedBase(dir, before)
	if err != nil {
		return none, err
	}
	weights, err := checkpoint.WeightsDigest(dir)
	if err != nil {
		return none, err
	}
	if remote, err := checkpoint.IsRemote(dir); err != nil || remote { // its weights are not known here
		if err != nil {
			return none, err
		}
		weights = ""
	}
	out, err := t.record.PutFolder(ctx, dir, digest, place.CheckpointPrefix(VersionName(step, digest)), shared)
	out.Weights = weights
	return out, err
}
