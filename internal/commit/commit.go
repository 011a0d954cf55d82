// Package commit implements the commit protocol of the record. It makes the results of an activity part of the record
// exactly once, whatever fails and however often the activity is tried.
//
// A *data shard* is put under a key that holds its digest, so attempts that make the same bytes share one object, and
// attempts that make different bytes never overwrite each other's. The *audit* reads every shard back and checks its
// digest, size, row count and rows. The *manifest* then commits them with a put-if-absent: of concurrent attempts one
// wins; a loser *adopts* the winner's manifest and its own shards become *orphans*, which no reader sees, because
// readers find shards through manifests.
//
// The package connects store and schema:
//
//	rows → Shard (put under its digest) → Commit (audit, then put the manifest if absent) → Head
//
// Activities write through it; analysis only reads.
package commit

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/ropewalk/ropewalk/internal/rescue"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store"
)

// ErrDamaged is wrapped by every error about bytes that differ from what a manifest says.
var ErrDamaged = errors.New("record is damaged")

// ErrUnkept is wrapped by errors of Commit about objects that are missing or differ from what was put, before a
// manifest lists them. Nothing of the record is damaged: another attempt puts them again.
var ErrUnkept = errors.New("the store did not keep what was put")

// concurrent is the number of objects that are read concurrently. Each is held in memory.
const concurrent = 4

// Writer reads and commits the record of a store. Its only state is a cache: it is safe for concurrent use, and a new
// Writer continues where one in another process ended.
type Writer struct {
	store store.Store
	cache *Cache // nil: every read goes to the store
	// audits says that reads go to the store even if the cache has the object.
	audits bool
}

// New returns a writer on a store.
func New(s store.Store) *Writer { return &Writer{store: s} }

// WithCache returns a writer that reads manifests by their refs, and data shards, from the cache if it has them. The
// cache gets what an audit or a read has verified, and each manifest that is committed. Audits, look-ups and heads
// always go to the store.
func (w *Writer) WithCache(c *Cache) *Writer {
	with := *w
	with.cache = c
	return &with
}

// Forget removes a run's objects from the cache, so that they are read from the store again.
func (w *Writer) Forget(run string) { w.cache.forget(schema.RunPrefix(run)) }

// CacheStats returns the counts of the cache; zero if there is no cache.
func (w *Writer) CacheStats() CacheStats { return w.cache.Stats() }

// auditor returns a writer whose reads go to the store and fill the cache.
func (w *Writer) auditor() *Writer {
	with := *w
	with.audits = true
	return &with
}

// Store returns the underlying store.
func (w *Writer) Store() store.Store { return w.store }

// Shard puts a data shard that is made at a place. The shard is not part of the record until a manifest that lists it
// is committed.
func (w *Writer) Shard(ctx context.Context, place schema.Place, table schema.Table, data []byte,
	rows int) (schema.ShardInfo, error) {
	if err := place.Validate(); err != nil {
		return schema.ShardInfo{}, fmt.Errorf("put shard of table %s: %w", table, err)
	}
	digest := schema.Digest(data)
	info := schema.ShardInfo{Key: place.DataKey(table, digest, table.Ext()), Table: table, Digest: digest,
		Bytes: int64(len(data)), Rows: rows}
	if err := w.store.Put(ctx, info.Key, data); err != nil {
		return schema.ShardInfo{}, fmt.Errorf("put shard of table %s: %w", table, err)
	}
	return info, nil
}

// Blob puts a file, such as one of a checkpoint, and returns its digest. The key must contain the digest of what the
// file belongs to.
func (w *Writer) Blob(ctx context.Context, key string, data []byte) (digest string, err error) {
	if err := w.store.Put(ctx, key, data); err != nil {
		return "", fmt.Errorf("put file: %w", err)
	}
	return schema.Digest(data), nil
}

// Commit audits what a manifest lists and commits it. If another attempt has committed the place already, Commit
// returns its manifest and adopted is true. After an error either nothing is committed, or the manifest is committed
// and the next call adopts it.
func (w *Writer) Commit(ctx context.Context, m schema.Manifest) (committed schema.Manifest, ref schema.Ref,
	adopted bool, err error) {
	data, err := schema.EncodeManifest(m)
	if err != nil {
		return schema.Manifest{}, schema.Ref{}, false, err
	}
	if err := w.audit(ctx, m); err != nil {
		return schema.Manifest{}, schema.Ref{}, false, fmt.Errorf("audit %s: %w", m.Place, err)
	}
	data, adopted, err = w.putOrAdopt(ctx, m.ManifestKey(), data)
	if err != nil {
		return schema.Manifest{}, schema.Ref{}, false, fmt.Errorf("commit %s: %w", m.Place, err)
	}
	if committed, ref, err = decodeManifest(m.Place, data); err == nil {
		w.cache.put(ref.Key, ref.Digest, data)
	}
	return committed, ref, adopted, err
}

// putOrAdopt puts a document if its key is free, and returns the document that is then under the key.
func (w *Writer) putOrAdopt(ctx context.Context, key string, data []byte) (there []byte, adopted bool, err error) {
	err = w.store.PutIfAbsent(ctx, key, data)
	if err == nil {
		return data, false, nil
	}
	if !errors.Is(err, store.ErrExists) {
		return nil, false, err
	}
	there, err = w.store.Get(ctx, key)
	if err != nil {
		return nil, false, fmt.Errorf("adopt the winner's document: %w", err)
	}
	return there, !bytes.Equal(there, data), nil
}

// Lookup returns the committed manifest of a place, if there is one.
func (w *Writer) Lookup(ctx context.Context, place schema.Place) (m schema.Manifest, ref schema.Ref, found bool,
	err error) {
	if err := place.Validate(); err != nil {
		return schema.Manifest{}, schema.Ref{}, false, fmt.Errorf("look up: %w", err)
	}
	data, err := w.store.Get(ctx, place.ManifestKey())
	if errors.Is(err, store.ErrNotFound) {
		return schema.Manifest{}, schema.Ref{}, false, nil
	}
	if err != nil {
		return schema.Manifest{}, schema.Ref{}, false, fmt.Errorf("look up %s: %w", place, err)
	}
	if m, ref, err = decodeManifest(place, data); err == nil {
		w.cache.put(ref.Key, ref.Digest, data)
	}
	return m, ref, err == nil, err
}

// decodeManifest decodes the bytes under a place's manifest key.
func decodeManifest(place schema.Place, data []byte) (schema.Manifest, schema.Ref, error) {
	m, err := schema.DecodeManifest(data)
	if err != nil {
		return schema.Manifest{}, schema.Ref{}, damaged(place.ManifestKey(), err)
	}
	if m.Place != place {
		return schema.Manifest{}, schema.Ref{}, damaged(place.ManifestKey(), fmt.Errorf("it is that of %s", m.Place))
	}
	return m, schema.Ref{Key: place.ManifestKey(), Digest: schema.Digest(data)}, nil
}

// damagedError says what is wrong with the object under a key.
type damagedError struct {
	key string
	err error
}

func damaged(key string, err error) error { return &damagedError{key, err} }

func (e *damagedError) Error() string {
	return fmt.Sprintf("%s: %s: %s; restore the object from a copy", ErrDamaged, e.key, e.err)
}

func (e *damagedError) Unwrap() []error { return []error{ErrDamaged, e.err} }

// unkept makes an error about a damaged object one about an object that no manifest lists yet.
func unkept(err error) error {
	var damage *damagedError
	if errors.As(err, &damage) {
		return fmt.Errorf("%w: %s: %w", ErrUnkept, damage.key, damage.err)
	}
	return err
}

// Head returns a step's head, if the step has one; step is a number or schema.InitStep.
func (w *Writer) Head(ctx context.Context, run, step string) (h schema.Head, ref schema.Ref, found bool, err error) {
	key := schema.HeadKey(run, step)
	data, err := w.store.Get(ctx, key)
	if errors.Is(err, store.ErrNotFound) {
		return schema.Head{}, schema.Ref{}, false, nil
	}
	if err != nil {
		return schema.Head{}, schema.Ref{}, false, fmt.Errorf("read head: %w", err)
	}
	h, ref, err = decodeHead(key, data)
	return h, ref, err == nil, err
}

// CommitHead commits a step's head after checking that its manifests exist. As in Commit, the first head stays.
func (w *Writer) CommitHead(ctx context.Context, h schema.Head) (committed schema.Head, ref schema.Ref, adopted bool,
	err error) {
	data, err := schema.EncodeHead(h)
	if err != nil {
		return schema.Head{}, schema.Ref{}, false, err
	}
	var refs []schema.Ref
	for _, stage := range h.Stages {
		refs = append(refs, stage...)
	}
	if err := rescue.Each(ctx, concurrent, len(refs), func(ctx context.Context, i int) error {
		_, err := w.auditor().Read(ctx, refs[i])
		return err
	}); err != nil {
		return schema.Head{}, schema.Ref{}, false, fmt.Errorf("commit head of run %s step %s: %w", h.Run, h.Step, err)
	}
	data, adopted, err = w.putOrAdopt(ctx, h.Key(), data)
	if err != nil {
		return schema.Head{}, schema.Ref{}, false, fmt.Errorf("commit head of run %s step %s: %w", h.Run, h.Step, err)
	}
	committed, ref, err = decodeHead(h.Key(), data)
	return committed, ref, adopted, err
}

// ShareHead commits a fork's head of a step that it shares. What the head names was audited when it was committed.
func (w *Writer) ShareHead(ctx context.Context, h schema.Head) error {
	data, err := schema.EncodeHead(h)
	if err != nil {
		return err
	}
	_, adopted, err := w.putOrAdopt(ctx, h.Key(), data)
	if err == nil && adopted {
		err = damaged(h.Key(), fmt.Errorf("it is not the head of step %s of run %s, which it shares", h.Step, h.From))
	}
	return err
}

func decodeHead(key string, data []byte) (schema.Head, schema.Ref, error) {
	h, err := schema.DecodeHead(data)
	if err != nil {
		return schema.Head{}, schema.Ref{}, damaged(key, err)
	}
	if h.Key() != key {
		return schema.Head{}, schema.Ref{}, damaged(key, fmt.Errorf("it is that of run %s step %s", h.Run, h.Step))
	}
	return h, schema.Ref{Key: key, Digest: schema.Digest(data)}, nil
}
