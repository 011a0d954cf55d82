package commit

import (
	"context"
	"fmt"

	"github.com/ropewalk/ropewalk/schema"
)

// audit reads back everything that a manifest is about to commit. Nothing is remembered from when
// it was put: the shards may be another attempt's, and a store may have lied.
func (w *Writer) audit(ctx context.Context, m schema.Manifest) error {
	err := w.each(ctx, len(m.Shards), func(ctx context.Context, i int) error {
		s := m.Shards[i]
		data, err := w.ReadShard(ctx, s)
		if err != nil {
			return err
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
		if err := w.auditCheckpoint(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

func (w *Writer) auditCheckpoint(ctx context.Context, c *schema.Checkpoint) error {
	return w.each(ctx, len(c.Files), func(ctx context.Context, i int) error {
		f := c.Files[i]
		if f.At != "" {
			return w.auditShared(ctx, f)
		}
		data, err := w.ReadBlob(ctx, c.Prefix+f.Name, f.Digest)
		if err != nil {
			return fmt.Errorf("checkpoint file: %w", err)
		}
		if int64(len(data)) != f.Bytes {
			return fmt.Errorf("checkpoint file: %w", damaged(c.Prefix+f.Name, fmt.Errorf("its manifest says %d bytes, and it has %d", f.Bytes, len(data))))
		}
		return nil
	})
}

// auditShared looks for a file that an earlier checkpoint has put: its bytes were audited when that was committed.
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
	return fmt.Errorf("checkpoint file: %w", damaged(f.At, fmt.Errorf("a manifest says that %d bytes of an earlier checkpoint lie there", f.Bytes)))
}
