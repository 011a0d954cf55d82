package enginepool

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/internal/trace"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/checkpoint"
	"github.com/ropewalk/ropewalk/schema"
)

// Resident is an engine and the models that it holds. Runs may share an engine. Therefore the user of an engine locks
// it and first makes the wanted version resident. Save, Load, Mark and Forget are for callers inside Use or Exclusive.
type Resident struct {
	record   *commit.Writer
	scratch  string
	engine   loader
	mu       sync.Mutex
	wanted   atomic.Int64 // users that wait for mu
	observer Observer
	holds    map[policy.Role]held // by role; a role whose model is unknown, e.g. after a failed update, has no entry
}

// loader is what samplers and trainers have in common.
type loader interface {
	Load(ctx context.Context, role policy.Role, dir string, optimizer bool) error
	Describe() policy.Description
}

// held is a resident model.
type held struct {
	digest    string // of its checkpoint
	optimizer bool   // it was loaded, or saved, with its optimiser's state
}

// Version is a committed model: the digest of its checkpoint and the manifest that commits it.
type Version struct {
	Manifest schema.Ref
	Digest   string
	// Positions is the longest sequence that the model is to read, where that is more than its checkpoint says; 0 =
	// what it says.
	Positions int
}

// name identifies the resident model: the same checkpoint reads longer sequences under another name.
func (v Version) name() string {
	if v.Positions == 0 || v.Digest == "" {
		return v.Digest
	}
	return fmt.Sprintf("%s, %d positions", v.Digest, v.Positions)
}

func (p *Pool) resident(engine loader) *Resident {
	return &Resident{record: p.record, engine: engine, scratch: p.scratch, observer: p.observer,
		holds: map[policy.Role]held{}}
}

// lock waits until no other user has the engine, and returns the function that ends the use.
func (r *Resident) lock() (unlock func()) {
	r.wanted.Add(1)
	r.mu.Lock()
	r.wanted.Add(-1)
	return r.mu.Unlock
}

// Describe names the engine's device and numerical library.
func (r *Resident) Describe() policy.Description { return r.engine.Describe() }

// Holds reports whether a checkpoint is resident under a role.
func (r *Resident) Holds(role policy.Role, digest string) bool {
	return digest != "" && r.holds[role].digest == digest
}

// Mark says that a checkpoint is resident under a role, with its optimiser's state if optimizer is set: the caller has
// just saved it.
func (r *Resident) Mark(role policy.Role, digest string, optimizer bool) {
	r.holds[role] = held{digest, optimizer}
}

// Forget makes the next use of a role load its checkpoint again, because the resident model has changed or is unknown.
func (r *Resident) Forget(role policy.Role) { delete(r.holds, role) }

// sampleSpan is the name of the spans of uses of an engine that generate.
const sampleSpan = "engine sample"

// works counts and traces one use of the engine, from now until the returned function is called.
func (r *Resident) works(ctx context.Context, what string) func() {
	_, span := trace.Start(ctx, "engine "+what)
	if r.observer == nil {
		return func() { span.End("") }
	}
	device, began := r.Describe().Device, time.Now()
	return func() {
		span.End("", slog.String("device", device))
		r.observer.Works(device, what, time.Since(began))
	}
}

// within runs fn with a version resident under a role. The caller holds the lock.
func (r *Resident) within(ctx context.Context, role policy.Role, v Version, optimizer bool, fn func() error) error {
	if !r.Holds(role, v.name()) || (optimizer && !r.holds[role].optimizer) {
		if err := r.load(ctx, role, v, optimizer); err != nil {
			return err
		}
	}
	return r.noteLoss(fn())
}

// noteLoss returns err. If the engine is lost, nothing is resident any more: noteLoss records that, and the next use
// loads again, which restarts the engine.
func (r *Resident) noteLoss(err error) error {
	if errors.Is(err, policy.ErrLost) || errors.Is(err, policy.ErrNotLoaded) {
		clear(r.holds)
	}
	return err
}

func (r *Resident) load(ctx context.Context, role policy.Role, v Version, optimizer bool) error {
	r.Forget(role)
	manifest, err := r.record.Read(ctx, v.Manifest)
	if err != nil {
		return err
	}
	c, what := manifest.Checkpoint, "checkpoint"
	if role == policy.RoleCritic {
		c, what = manifest.Critic, "critic"
	}
	if c == nil {
		return fmt.Errorf("%w: %s names no %s", commit.ErrDamaged, v.Manifest.Key, what)
	}
	if err := r.loadLonger(ctx, role, *c, optimizer, v.Positions); err != nil {
		return err
	}
	r.Mark(role, v.name(), optimizer)
	return nil
}

// Load loads a committed checkpoint under a role. What is resident there afterwards is for the caller to Mark.
func (r *Resident) Load(ctx context.Context, role policy.Role, c schema.Checkpoint, optimizer bool) error {
	return r.loadLonger(ctx, role, c, optimizer, 0)
}

// loadLonger is Load of a model that is to read sequences of so many positions; 0 = as many as its checkpoint says.
func (r *Resident) loadLonger(ctx context.Context, role policy.Role, c schema.Checkpoint, optimizer bool,
	positions int) error {
	r.Forget(role)
	dir, err := os.MkdirTemp(r.scratch, "load-")
	if err != nil {
		return fmt.Errorf("make a folder for checkpoint %s: %w", c.Digest, err)
	}
	defer os.RemoveAll(dir)
	if err := Fetch(ctx, r.record, c, dir, optimizer); err != nil {
		return err
	}
	if positions > 0 {
		if err := checkpoint.Lengthen(dir, positions); err != nil {
			return fmt.Errorf("load checkpoint %s: %w", c.Prefix, err)
		}
	}
	if err := r.LoadFolder(ctx, role, dir, optimizer); err != nil {
		return fmt.Errorf("load checkpoint %s: %w", c.Prefix, err)
	}
	return nil
}

// LoadFolder is Load for a folder that is not committed.
func (r *Resident) LoadFolder(ctx context.Context, role policy.Role, dir string, optimizer bool) error {
	r.Forget(role)
	err := r.noteLoss(r.engine.Load(ctx, role, dir, optimizer))
	if err == nil && r.observer != nil {
		r.observer.Loaded(r.Describe().Device)
	}
	return err
}
