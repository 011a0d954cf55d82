package analysis

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/internal/rescue"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store"
)

// ErrNoStep means that the run has no head for that step.
var ErrNoStep = errors.New("no such step is finished")

// Record reads the record of one store. It is safe for concurrent use.
type Record struct {
	writer  *commit.Writer
	objects store.Store
	cache   *Cache      // nil: fetch everything
	files   store.Files // nil unless the store's objects are local files
	gen     Generation
	// originals says that merged copies are passed over.
	originals bool
	gaps      func(*GapError) error // decides about missing heads; nil makes them an error

	observed Observed // what a Temporal server says about the runs
}

// New returns a reader of the record in a store.
func New(objects store.Store) *Record {
	files, _ := objects.(store.Files)
	return &Record{writer: commit.New(objects), objects: objects, files: files}
}

// WithCache returns a reader that keeps what it fetches, by digest, and so asks the store only once for each manifest
// and shard. Objects that are local files are not copied. Verify never uses the cache.
func (r *Record) WithCache(c *Cache) *Record {
	with := *r
	if r.files == nil {
		with.cache = c
	}
	return &with
}

// Store is the store that is read.
func (r *Record) Store() store.Store { return r.objects }

// Cache keeps what is fetched; nil if nothing does.
func (r *Record) Cache() *Cache { return r.cache }

// Originals returns a reader that passes merged copies over and reads the shards that stages have committed.
func (r *Record) Originals() *Record {
	with := *r
	with.originals = true
	return &with
}

// fetches is how many small objects are fetched at once, since each takes a round trip to the store.
const fetches = 16

// blob returns the bytes under a key, checked against their digest.
func (r *Record) blob(ctx context.Context, key, digest, ext string) ([]byte, error) {
	if r.cache != nil {
		if data, ok := r.cache.Get(digest, ext); ok {
			return data, nil
		}
	}
	data, err := r.writer.ReadBlob(ctx, key, digest)
	if err != nil {
		return nil, err
	}
	if r.cache != nil {
		if _, err := r.cache.Put(digest, ext, data); err != nil {
			return nil, err
		}
	}
	return data, nil
}

// manifest returns the manifest that a ref names.
func (r *Record) manifest(ctx context.Context, ref schema.Ref) (schema.Manifest, error) {
	data, err := r.blob(ctx, ref.Key, ref.Digest, "json")
	if err != nil {
		return schema.Manifest{}, fmt.Errorf("read manifest: %w", err)
	}
	m, err := schema.DecodeManifest(data)
	if err != nil {
		return m, fmt.Errorf("%w: %s: %w", commit.ErrDamaged, ref.Key, err)
	}
	if m.ManifestKey() != ref.Key {
		return m, fmt.Errorf("%w: %s: it is the manifest of %s", commit.ErrDamaged, ref.Key, m.Place)
	}
	return m, nil
}

// manifests returns the manifests that refs name and their parts, a stage manifest before its parts.
func (r *Record) manifests(ctx context.Context, refs []schema.Ref) ([]schema.Manifest, error) {
	stages, err := r.readAll(ctx, refs)
	if err != nil {
		return nil, err
	}
	var parts []schema.Ref
	for _, m := range stages {
		parts = append(parts, m.Parts...)
	}
	rest, err := r.readAll(ctx, parts)
	if err != nil {
		return nil, err
	}
	all := make([]schema.Manifest, 0, len(stages)+len(rest))
	for _, m := range stages {
		all = append(all, m)
		all, rest = append(all, rest[:len(m.Parts)]...), rest[len(m.Parts):]
	}
	return all, nil
}

func (r *Record) readAll(ctx context.Context, refs []schema.Ref) ([]schema.Manifest, error) {
	out := make([]schema.Manifest, len(refs))
	err := rescue.Each(ctx, fetches, len(refs), func(ctx context.Context, i int) (err error) {
		out[i], err = r.manifest(ctx, refs[i])
		return err
	})
	return out, err
}

// lookups returns the manifests at places, and the refs to them; zero values where nothing is committed.
func (r *Record) lookups(ctx context.Context, places []schema.Place) ([]schema.Manifest, []schema.Ref, error) {
	found, refs := make([]schema.Manifest, len(places)), make([]schema.Ref, len(places))
	err := rescue.Each(ctx, fetches, len(places), func(ctx context.Context, i int) (err error) {
		found[i], refs[i], _, err = r.writer.Lookup(ctx, places[i])
		return err
	})
	return found, refs, err
}

// places lists the manifests whose keys begin with a prefix, in the order of their keys.
func (r *Record) places(ctx context.Context, prefix string) ([]schema.Place, error) {
	listed, err := r.objects.List(ctx, prefix)
	if err != nil {
		return nil, fmt.Errorf("list the manifests under %s: %w", prefix, err)
	}
	var places []schema.Place
	for _, o := range listed {
		if p, err := schema.ParseManifestKey(o.Key); err == nil {
			places = append(places, p)
		}
	}
	return places, nil
}

// names lists the documents NAME.json below a prefix.
func (r *Record) names(ctx context.Context, prefix string) (names []string, err error) {
	listed, err := r.objects.List(ctx, prefix)
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", prefix, err)
	}
	for _, o := range listed {
		names = append(names, strings.TrimSuffix(strings.TrimPrefix(o.Key, prefix), ".json"))
	}
	return names, nil
}

// readJSON decodes a document of the store that no digest names; found is false if there is none.
func readJSON[T any](ctx context.Context, r *Record, key string) (out T, found bool, err error) {
	data, err := r.objects.Get(ctx, key)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return out, false, nil
	case err != nil:
		return out, false, fmt.Errorf("read %s: %w", key, err)
	}
	if err := json.Unmarshal(data, &out); err != nil {
		return out, false, fmt.Errorf("%w: %s: %w", commit.ErrDamaged, key, err)
	}
	return out, true, nil
}

// document returns the JSON document that a manifest commits.
func (r *Record) document(ctx context.Context, m schema.Manifest) ([]byte, error) {
	documents := m.ShardsOf(schema.Documents)
	if len(documents) == 0 {
		return nil, fmt.Errorf("%w: %s names no document", commit.ErrDamaged, m.ManifestKey())
	}
	data, err := r.blob(ctx, documents[0].Key, documents[0].Digest, documents[0].Table.Ext())
	if err != nil {
		return nil, fmt.Errorf("read the document of %s: %w", m.ManifestKey(), err)
	}
	return data, nil
}

// recipe decodes fields of the document that a manifest commits: the resolved recipe, or a warm start's inputs.
func (r *Record) recipe(ctx context.Context, m schema.Manifest, fields any) error {
	data, err := r.document(ctx, m)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, fields); err != nil {
		return fmt.Errorf("%w: the document of %s: %w", commit.ErrDamaged, m.ManifestKey(), err)
	}
	return nil
}
