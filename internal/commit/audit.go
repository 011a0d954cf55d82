package commit

import (
	"context"
	"fmt"
	"path"

	"github.com/ropewalk/ropewalk/internal/rescue"
	"github.com/ropewalk/ropewalk/schema"
)

// audit reads back everything that a manifest is about to commit. It does not rely on what was checked when the objects
// were put: the shards may be another attempt's, and a store may have lied.
func (w *Writer) audit(ctx context.Context, m schema.Manifest) error {
	w = w.auditor()
	err := rescue.Each(ctx, concurrent, len(m.Shards), func(ctx context.Context, i int) error {
		s := m.Shards[i]
		data, err := w.ReadShard(ctx, s)
		if err != nil {
			return unkept(err)
		}
		if err := schema.AuditShard(s.Table, data, s.Rows); err != nil {
			return fmt.Errorf("%s: %w", s.Key, err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if _, err := w.Parts(ctx, m); err != nil {
		return err
	}
	for _, c := range m.Checkpoints() {
		made := c.Prefix == m.CheckpointPrefix(path.Base(c.Prefix))
		if err := w.auditCheckpoint(ctx, c, made); err != nil {
			return err
		}
	}
	return nil
}

// auditCheckpoint reads a checkpoint back. If it was not made here, the manifest of its warm start lists it already.
func (w *Writer) auditCheckpoint(ctx context.Context, c *schema.Checkpoint, made bool) error {
	return rescue.Each(ctx, concurrent, len(c.Files), func(ctx context.Context, i int) error {
		f := c.Files[i]
		if f.At != "" {
			return w.auditShared(ctx, f)
		}
		err := w.CheckObject(ctx, c.Prefix+f.Name, f.Digest, f.Bytes)
		if made {
			err = unkept(err)
		}
		if err != nil {
			return fmt.Errorf("checkpoint file: %w", err)
		}
		return nil
	})
}

// auditShared checks that a file of an earlier checkpoint exists. Its bytes were audited when that checkpoint was
// committed.
func (w *Writer) auditShared(ctx context.Context, f schema.CheckpointFile) error {
	objects, err := w.store.List(ctx, f.At)
	if err != nil {
		return fmt.Errorf("checkpoint file: %w", err)
	}
	for _, o := range objects {
		if o.Key == f.At && o.Size == f.Bytes {
			return nil
		}
	}
	return fmt.Errorf("checkpoint file: %w",
		damaged(f.At, fmt.Errorf("a manifest lists %d bytes of an earlier checkpoint under this key", f.Bytes)))
}
