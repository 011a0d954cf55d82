package activities

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/ropewalk/ropewalk/activities/wire"
	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/checkpoint"
	"github.com/ropewalk/ropewalk/schema"
)

// slot is one engine of this worker. Runs may share a worker, so whoever uses the engine holds
// the slot and first makes the wanted checkpoint resident.
type slot struct {
	record  *commit.Writer
	engine  policy.Engine
	scratch string
	mu      sync.Mutex
	// resident is the digest of what is loaded; "" when unknown, e.g. after a failed update.
	resident  string
	optimizer bool
	// others are the digests of what is loaded under other roles than the policy's, and trains says
	// which of it has its optimiser's state.
	others map[policy.Role]string
	trains map[policy.Role]bool
}

func newSlot(record *commit.Writer, engine policy.Engine, scratch string) *slot {
	return &slot{record: record, engine: engine, scratch: scratch, others: map[policy.Role]string{}, trains: map[policy.Role]bool{}}
}

// use runs fn with ref's checkpoint resident, with its optimiser state where asked for.
func (s *slot) use(ctx context.Context, ref wire.PolicyRef, optimizer bool, fn func(policy.Engine) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.resident != ref.Digest || (optimizer && !s.optimizer) {
		s.resident = ""
		if err := s.load(ctx, policy.RolePolicy, ref, optimizer); err != nil {
			return err
		}
		s.resident, s.optimizer = ref.Digest, optimizer
	}
	return s.judged(fn(s.engine))
}

// judged passes an error on. Where the engine is lost, so is all that was resident in it: the next use loads again, which
// brings the engine up anew.
func (s *slot) judged(err error) error {
	if errors.Is(err, policy.ErrLost) || errors.Is(err, policy.ErrNotLoaded) {
		s.forget()
		clear(s.others)
	}
	return err
}

// useAfresh is use for an update that begins without the optimiser's state, whatever is resident.
func (s *slot) useAfresh(ctx context.Context, ref wire.PolicyRef, fn func(policy.Engine) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.resident = ""
	if err := s.load(ctx, policy.RolePolicy, ref, false); err != nil {
		return err
	}
	s.resident, s.optimizer = ref.Digest, false
	return s.judged(fn(s.engine))
}

// useAs runs fn with ref's checkpoint resident under another role than the policy's, which stays.
func (s *slot) useAs(ctx context.Context, role policy.Role, ref wire.PolicyRef, fn func(policy.Engine) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hold(ctx, role, ref, false, fn)
}

// hold is useAs for who holds the slot already.
func (s *slot) hold(ctx context.Context, role policy.Role, ref wire.PolicyRef, optimizer bool, fn func(policy.Engine) error) error {
	if s.others[role] != ref.Digest || (optimizer && !s.trains[role]) {
		s.forgetAs(role)
		if err := s.load(ctx, role, ref, optimizer); err != nil {
			return err
		}
		s.others[role], s.trains[role] = ref.Digest, optimizer
	}
	return s.judged(fn(s.engine))
}

// forget makes the next use load its checkpoint again: what is resident has changed or is in doubt.
func (s *slot) forget() { s.resident = "" }

// forgetAs is forget for another role than the policy's.
func (s *slot) forgetAs(role policy.Role) { delete(s.others, role) }

func (s *slot) load(ctx context.Context, role policy.Role, ref wire.PolicyRef, optimizer bool) error {
	dir, err := os.MkdirTemp(s.scratch, "load-")
	if err != nil {
		return fmt.Errorf("make a folder for checkpoint %s: %w", ref.Digest, err)
	}
	defer os.RemoveAll(dir)
	manifest, err := s.record.Read(ctx, ref.Manifest)
	if err != nil {
		return err
	}
	c, what := manifest.Checkpoint, "checkpoint"
	if role == policy.RoleCritic {
		c, what = manifest.Critic, "critic"
	}
	if c == nil {
		return fmt.Errorf("%w: %s names no %s", commit.ErrDamaged, ref.Manifest.Key, what)
	}
	return s.loadFrom(ctx, role, *c, dir, optimizer)
}

// loadFrom makes a committed checkpoint resident by way of the empty folder dir.
func (s *slot) loadFrom(ctx context.Context, role policy.Role, c schema.Checkpoint, dir string, optimizer bool) error {
	if err := fetchCheckpoint(ctx, s.record, c, dir, optimizer); err != nil {
		return err
	}
	if err := s.judged(s.engine.Load(ctx, role, dir, optimizer)); err != nil {
		return fmt.Errorf("load checkpoint %s: %w", c.Prefix, err)
	}
	return nil
}

// fetchCheckpoint writes a committed checkpoint's files, verified, into dir; the optimiser's
// state, two thirds of the bytes, only where it is wanted.
func fetchCheckpoint(ctx context.Context, record *commit.Writer, c schema.Checkpoint, dir string, optimizer bool) error {
	for _, file := range c.Files {
		if file.Name == checkpoint.FileOptimizer && !optimizer {
			continue
		}
		data, err := record.ReadBlob(ctx, c.Key(file), file.Digest)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, file.Name), data, 0o600); err != nil {
			return fmt.Errorf("write checkpoint file %s: %w", file.Name, err)
		}
	}
	return nil
}

// save stores what is resident under a prefix of the place's and returns what a manifest says of
// it. Without the optimiser the next load starts AdamW afresh. Before is the checkpoint that an update began with: the base
// of an adapter is not put again where that has it.
func (s *slot) save(ctx context.Context, place schema.Place, step int, optimizer bool, before *schema.Checkpoint) (schema.Checkpoint, error) {
	return s.saveAs(ctx, policy.RolePolicy, place, step, optimizer, before)
}

// saveAs is save of what is resident under a role.
func (s *slot) saveAs(ctx context.Context, role policy.Role, place schema.Place, step int, optimizer bool, before *schema.Checkpoint) (schema.Checkpoint, error) {
	none := schema.Checkpoint{}
	dir, err := os.MkdirTemp(s.scratch, "save-")
	if err != nil {
		return none, fmt.Errorf("make a folder for a checkpoint: %w", err)
	}
	defer os.RemoveAll(dir)
	digest, err := s.engine.Save(ctx, role, dir)
	if err != nil {
		return none, fmt.Errorf("save the %s: %w", role, err)
	}
	if !optimizer {
		if err := os.Remove(filepath.Join(dir, checkpoint.FileOptimizer)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return none, fmt.Errorf("drop the optimiser's state: %w", err)
		}
		if digest, err = checkpoint.Digest(dir); err != nil {
			return none, err
		}
	}
	shared, err := sharedBase(dir, before)
	if err != nil {
		return none, err
	}
	return storeCheckpoint(ctx, s.record, dir, digest, place.CheckpointPrefix(checkpointVersion(step, digest)), shared)
}

// checkpointVersion names a checkpoint so that a listing is in the order of steps.
func checkpointVersion(step int, digest string) string {
	return fmt.Sprintf("%06d-%s", step, digest[:16])
}

// sharedBase are the files of the checkpoint before that the folder's may be, by name: the weights that an adapter stands
// beside, as far as they lie where nothing is pruned.
func sharedBase(dir string, before *schema.Checkpoint) (map[string]schema.CheckpointFile, error) {
	adapter, err := checkpoint.HasAdapter(dir)
	if err != nil || !adapter || before == nil {
		return nil, err
	}
	shared := map[string]schema.CheckpointFile{}
	for _, f := range before.Files {
		if f.At = before.Key(f); checkpoint.IsWeights(f.Name) && schema.Lasting(f.At) {
			shared[f.Name] = f
		}
	}
	return shared, nil
}

// storeCheckpoint puts the folder's files under prefix, but for those that are one of the shared; they count once a manifest
// lists them.
func storeCheckpoint(ctx context.Context, record *commit.Writer, dir, digest, prefix string, shared map[string]schema.CheckpointFile) (schema.Checkpoint, error) {
	out := schema.Checkpoint{Prefix: prefix, Digest: digest}
	entries, err := os.ReadDir(dir) // sorted by name
	if err != nil {
		return out, fmt.Errorf("list checkpoint files: %w", err)
	}
	for _, entry := range entries {
		data, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			return out, fmt.Errorf("read checkpoint file %s: %w", entry.Name(), err)
		}
		if f, ok := shared[entry.Name()]; ok && f.Digest == schema.Digest(data) {
			out.Files = append(out.Files, f)
			continue
		}
		sum, err := record.Blob(ctx, prefix+entry.Name(), data)
		if err != nil {
			return out, err
		}
		out.Files = append(out.Files, schema.CheckpointFile{Name: entry.Name(), Digest: sum, Bytes: int64(len(data))})
	}
	return out, nil
}
