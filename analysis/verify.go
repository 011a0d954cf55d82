package analysis

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store"
)

// verifier collects what Verify finds.
type verifier struct {
	*Record
	run string

	mu        sync.Mutex
	out       Verification
	named     map[string]bool      // keys that something names
	manifests map[string]committed // by key; those of warm starts included
	heads     map[int]schema.Head
	files     map[schema.CheckpointFile]bool // of checkpoints, each with its key: whether they are sound
	updates   map[string][]schema.UpdateRow  // by shard key
	excluded  map[string]int                 // rows of the selection that say so, by shard key
	kept      map[string]int                 // … and that were kept
	masked    map[string]int                 // … and of these, masked
}

// committed is a manifest that could be read, with the digest of its bytes.
type committed struct {
	schema.Manifest
	digest string
}

// Verify reads everything that a run has committed, whatever its generation and whether or not its
// step is done, and checks existence, digests, row counts, rows, lineage and checkpoints. An error
// means that the store could not be asked.
func (r *Record) Verify(ctx context.Context, run string) (Verification, error) {
	if err := schema.CheckRunID(run); err != nil {
		return Verification{}, fmt.Errorf("%w: %w", ErrNoRun, err)
	}
	listed, err := r.objects.List(ctx, schema.RunPrefix(run))
	if err != nil {
		return Verification{}, fmt.Errorf("list run %s: %w", run, err)
	}
	if len(listed) == 0 {
		return Verification{}, fmt.Errorf("%w: %s has committed nothing in %s", ErrNoRun, run, r.objects)
	}
	v := &verifier{
		Record: r, run: run, out: Verification{Run: run}, named: map[string]bool{},
		manifests: map[string]committed{}, heads: map[int]schema.Head{}, files: map[schema.CheckpointFile]bool{},
		updates: map[string][]schema.UpdateRow{}, excluded: map[string]int{}, kept: map[string]int{}, masked: map[string]int{},
	}
	steps := []func(context.Context) error{
		func(ctx context.Context) error { return v.readManifests(ctx, listed) },
		v.readForeign, v.checkShards, v.checkCheckpoints,
	}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return Verification{}, err
		}
	}
	v.checkConfig()
	v.checkRefs()
	v.checkHeads()
	v.countOrphans(listed)
	v.countGenerations()
	v.out.Faults = sortFaults(v.out.Faults)
	return v.out, nil
}

func (v *verifier) fault(kind FaultKind, key, format string, args ...any) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.out.Faults = append(v.out.Faults, Fault{Key: key, Kind: kind, Message: fmt.Sprintf(format, args...)})
}

// get returns an object's bytes. What the store itself finds wrong with one object is a fault, and
// the bytes are then nil; that the store does not answer is an error.
func (v *verifier) get(ctx context.Context, key, namedBy string) ([]byte, error) {
	data, err := v.objects.Get(ctx, key)
	switch {
	case err == nil:
		return data, nil
	case errors.Is(err, store.ErrNotFound):
		v.fault(FaultMissing, key, "is not there, and %s names it", namedBy)
		return nil, nil
	case ctx.Err() != nil, errors.Is(err, store.ErrUnreachable), errors.Is(err, store.ErrCredentials), errors.Is(err, store.ErrNoBucket):
		return nil, err
	}
	v.fault(FaultDamaged, key, "cannot be read: %v", err)
	return nil, nil
}

// readManifests reads every manifest and head that lies under the run's prefix.
func (v *verifier) readManifests(ctx context.Context, listed []store.Object) error {
	return each(ctx, fetches, len(listed), func(ctx context.Context, i int) error {
		key := listed[i].Key
		switch {
		case strings.HasPrefix(key, schema.ManifestsPrefix(v.run)):
			return v.readManifest(ctx, key, "a listing")
		case strings.HasPrefix(key, schema.HeadsPrefix(v.run)):
			return v.readHead(ctx, key)
		}
		return nil
	})
}

func (v *verifier) readManifest(ctx context.Context, key, namedBy string) error {
	v.name(key)
	if _, err := schema.ParseManifestKey(key); err != nil {
		v.fault(FaultDamaged, key, "lies among the manifests and has no manifest's key")
		return nil
	}
	data, err := v.get(ctx, key, namedBy)
	if err != nil || data == nil {
		return err
	}
	m, err := schema.DecodeManifest(data)
	if err != nil {
		v.fault(FaultDamaged, key, "is no manifest: %v", err)
		return nil
	}
	if m.ManifestKey() != key {
		v.fault(FaultDamaged, key, "is the manifest of %s", m.Place)
		return nil
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.manifests[key] = committed{m, schema.Digest(data)}
	v.out.Manifests++
	return nil
}

func (v *verifier) readHead(ctx context.Context, key string) error {
	v.name(key)
	data, err := v.get(ctx, key, "a listing")
	if err != nil || data == nil {
		return err
	}
	h, err := schema.DecodeHead(data)
	if err != nil {
		v.fault(FaultDamaged, key, "is no head: %v", err)
		return nil
	}
	if h.Key() != key {
		v.fault(FaultDamaged, key, "is the head of run %s step %s", h.Run, h.Step)
		return nil
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.out.Heads++
	if n, ok := stepOf(h.Step); ok {
		v.heads[n] = h
	}
	return nil
}

func (v *verifier) name(key string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.named[key] = true
}

// readForeign reads the manifests outside the run that its manifests were made from: warm starts.
func (v *verifier) readForeign(ctx context.Context) error {
	wanted := map[string]string{} // key → who names it
	for _, key := range v.keys() {
		for _, ref := range v.manifests[key].Inputs {
			if !strings.HasPrefix(ref.Key, schema.RunPrefix(v.run)) && wanted[ref.Key] == "" {
				wanted[ref.Key] = key
			}
		}
	}
	keys := slices.Sorted(maps.Keys(wanted))
	return each(ctx, fetches, len(keys), func(ctx context.Context, i int) error {
		return v.readManifest(ctx, keys[i], wanted[keys[i]])
	})
}

// keys lists the manifests that could be read, in order.
func (v *verifier) keys() []string { return slices.Sorted(maps.Keys(v.manifests)) }

// checkShards reads every shard once, whoever names it.
func (v *verifier) checkShards(ctx context.Context) error {
	var shards []schema.ShardInfo
	var owners []string
	seen := map[string]bool{}
	for _, key := range v.keys() {
		for _, s := range v.manifests[key].Shards {
			if !seen[s.Key] {
				seen[s.Key] = true
				shards, owners = append(shards, s), append(owners, key)
			}
		}
	}
	return each(ctx, shardsAtOnce, len(shards), func(ctx context.Context, i int) error {
		return v.checkShard(ctx, shards[i], owners[i])
	})
}

func (v *verifier) checkShard(ctx context.Context, s schema.ShardInfo, owner string) error {
	v.name(s.Key)
	data, err := v.get(ctx, s.Key, owner)
	if err != nil || data == nil {
		return err
	}
	if !v.whole(s.Key, owner, data, s.Digest, s.Bytes) {
		return nil
	}
	if err := schema.AuditShard(s.Table, data, s.Rows); err != nil {
		v.fault(FaultRows, s.Key, "%v", err)
		return nil
	}
	if err := v.remember(s, data); err != nil {
		return fmt.Errorf("%s: %w", s.Key, err) // it has just been audited
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.out.Shards++
	v.out.Rows += int64(s.Rows)
	return nil
}

// remember keeps of a shard's rows what the checks between shards need.
func (v *verifier) remember(s schema.ShardInfo, data []byte) error {
	switch s.Table {
	case schema.Updates:
		rows, err := schema.Decode[schema.UpdateRow](data)
		v.mu.Lock()
		defer v.mu.Unlock()
		v.updates[s.Key] = rows
		return err
	case schema.Selection:
		rows, err := schema.Decode[schema.SelectionRow](data)
		v.mu.Lock()
		defer v.mu.Unlock()
		for _, r := range rows {
			if r.Excluded != nil {
				v.excluded[s.Key]++
			}
			if r.Kept {
				v.kept[s.Key]++
			}
			if r.Masked != nil {
				v.masked[s.Key]++
			}
		}
		return err
	}
	return nil
}

// whole checks bytes against what a manifest says of them.
func (v *verifier) whole(key, owner string, data []byte, digest string, size int64) bool {
	if got := schema.Digest(data); got != digest || int64(len(data)) != size {
		v.fault(FaultDamaged, key, "has %d bytes of digest %s, and %s says %d bytes of digest %s", len(data), got, owner, size, digest)
		return false
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.out.Bytes += size
	return true
}

func (v *verifier) countOrphans(listed []store.Object) {
	for _, o := range listed {
		if !v.named[o.Key] {
			v.out.Orphans++
		}
	}
}

func (v *verifier) countGenerations() {
	var places []schema.Place
	for _, m := range v.ordered() {
		if m.Warm == "" {
			places = append(places, m.Place)
		}
	}
	v.out.Generations = generationsOf(places)
}
