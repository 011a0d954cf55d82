package commit

import (
	"context"
	"errors"
	"fmt"

	"github.com/ropewalk/ropewalk/internal/rescue"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store"
)

// Read returns the manifest that a ref names, after checking its digest.
func (w *Writer) Read(ctx context.Context, ref schema.Ref) (schema.Manifest, error) {
	place, err := schema.ParseManifestKey(ref.Key)
	if err != nil {
		return schema.Manifest{}, fmt.Errorf("read manifest: %w", err)
	}
	data, err := w.read(ctx, ref.Key, ref.Digest)
	if err != nil {
		return schema.Manifest{}, fmt.Errorf("read manifest: %w", err)
	}
	m, _, err := decodeManifest(place, data)
	return m, err
}

// ReadShard returns a shard's bytes, after checking its size and digest.
func (w *Writer) ReadShard(ctx context.Context, s schema.ShardInfo) ([]byte, error) {
	data, err := w.read(ctx, s.Key, s.Digest)
	if err != nil {
		return nil, fmt.Errorf("read shard of table %s: %w", s.Table, err)
	}
	if int64(len(data)) != s.Bytes {
		return nil, fmt.Errorf("read shard of table %s: %w", s.Table,
			damaged(s.Key, fmt.Errorf("its manifest says %d bytes, but it has %d", s.Bytes, len(data))))
	}
	return data, nil
}

// read is ReadBlob through the cache.
func (w *Writer) read(ctx context.Context, key, digest string) ([]byte, error) {
	if !w.audits {
		if data, ok := w.cache.get(key, digest); ok {
			return data, nil
		}
	}
	data, err := w.ReadBlob(ctx, key, digest)
	if err != nil {
		return nil, err
	}
	w.cache.put(key, digest, data)
	return data, nil
}

// ReadBlob returns the bytes that the store has under a key, after checking their digest.
func (w *Writer) ReadBlob(ctx context.Context, key, digest string) ([]byte, error) {
	data, err := w.store.Get(ctx, key)
	if errors.Is(err, store.ErrNotFound) {
		return nil, damaged(key, fmt.Errorf("it is missing though a manifest lists it: %w", err))
	}
	if err != nil {
		return nil, err
	}
	if got := schema.Digest(data); got != digest {
		return nil, damaged(key, fmt.Errorf("its %d bytes have the digest %s, want %s", len(data), got, digest))
	}
	return data, nil
}

// Parts returns the shard manifests that a stage manifest lists, in the order of their shards.
func (w *Writer) Parts(ctx context.Context, m schema.Manifest) ([]schema.Manifest, error) {
	parts := make([]schema.Manifest, len(m.Parts))
	err := rescue.Each(ctx, concurrent, len(parts), func(ctx context.Context, i int) (err error) {
		parts[i], err = w.Read(ctx, m.Parts[i])
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read parts of %s: %w", m.Place, err)
	}
	return parts, nil
}

// Shards returns every shard of a table that the manifests commit, directly or through their parts, in order.
func (w *Writer) Shards(ctx context.Context, table schema.Table, manifests ...schema.Manifest) ([]schema.ShardInfo,
	error) {
	var out []schema.ShardInfo
	for _, m := range manifests {
		out = append(out, m.ShardsOf(table)...)
		parts, err := w.Parts(ctx, m)
		if err != nil {
			return nil, err
		}
		for _, p := range parts {
			out = append(out, p.ShardsOf(table)...)
		}
	}
	return out, nil
}

// PutRows encodes rows as a shard of their table and puts it. The rows must be in canonical order.
func PutRows[R schema.Row](ctx context.Context, w *Writer, place schema.Place, rows []R) (schema.ShardInfo, error) {
	data, err := schema.Encode(rows)
	if err != nil {
		return schema.ShardInfo{}, err
	}
	return w.Shard(ctx, place, schema.TableOf[R](), data, len(rows))
}

// Rows reads every row of R's table that the manifests commit, directly or through their parts, in the order of
// manifests, shards and rows.
func Rows[R schema.Row](ctx context.Context, w *Writer, manifests ...schema.Manifest) ([]R, error) {
	shards, err := w.Shards(ctx, schema.TableOf[R](), manifests...)
	if err != nil {
		return nil, err
	}
	pieces := make([][]R, len(shards))
	err = rescue.Each(ctx, concurrent, len(shards), func(ctx context.Context, i int) error {
		data, err := w.ReadShard(ctx, shards[i])
		if err != nil {
			return err
		}
		if pieces[i], err = schema.Decode[R](data); err != nil {
			return fmt.Errorf("read shard %s: %w", shards[i].Key, err)
		}
		if len(pieces[i]) != shards[i].Rows {
			return damaged(shards[i].Key, fmt.Errorf("its manifest says %d rows, but it has %d", shards[i].Rows,
				len(pieces[i])))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	rows := []R{}
	for _, p := range pieces {
		rows = append(rows, p...)
	}
	return rows, nil
}

// Batch reads the training batch that a manifest commits.
func Batch(ctx context.Context, w *Writer, m schema.Manifest) ([]schema.BatchRow, error) {
	rows := []schema.BatchRow{}
	for _, s := range m.ShardsOf(schema.Batch) {
		data, err := w.ReadShard(ctx, s)
		if err != nil {
			return nil, err
		}
		piece, err := schema.DecodeBatch(data)
		if err != nil {
			return nil, fmt.Errorf("read shard %s: %w", s.Key, err)
		}
		rows = append(rows, piece...)
	}
	return rows, nil
}

// PutDocument puts a value as a canonical JSON document.
func PutDocument(ctx context.Context, w *Writer, place schema.Place, value any) (schema.ShardInfo, error) {
	data, err := schema.Canonical(value)
	if err != nil {
		return schema.ShardInfo{}, err
	}
	return w.Shard(ctx, place, schema.Documents, data, 1)
}
