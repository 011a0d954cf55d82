package analysis

import (
	"context"
	"fmt"

	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/schema"
)

// shardsAtOnce is how many shards are decoded at once; each is held in memory.
const shardsAtOnce = 4

// Bytes returns a shard's bytes, checked against its digest.
func (v *Visible) Bytes(ctx context.Context, s Shard) ([]byte, error) {
	data, err := v.record.blob(ctx, s.Key, s.Digest, s.Table.Ext())
	if err != nil {
		return nil, fmt.Errorf("read shard of table %s: %w", s.Table, err)
	}
	return data, nil
}

// File returns the path of a shard that is a local file, checked against its digest.
func (v *Visible) File(ctx context.Context, s Shard) (path string, ok bool, err error) {
	if v.record.files == nil {
		return "", false, nil
	}
	_, err = v.Bytes(ctx, s)
	return v.record.files.File(s.Key), true, err
}

// rowsOf decodes shards of R's table; the rows are in the order of the shards, one slice each. With columns, only those
// are read.
func rowsOf[R schema.Row](ctx context.Context, v *Visible, shards []Shard, columns ...string) ([][]R, error) {
	decode := schema.Decode[R]
	if len(columns) > 0 {
		decode = func(data []byte) ([]R, error) { return schema.DecodeColumns[R](data, columns...) }
	}
	out := make([][]R, len(shards))
	err := each(ctx, shardsAtOnce, len(shards), func(ctx context.Context, i int) error {
		data, err := v.Bytes(ctx, shards[i])
		if err != nil {
			return err
		}
		if out[i], err = decode(data); err != nil {
			return fmt.Errorf("%w: %s: %w", commit.ErrDamaged, shards[i].Key, err)
		}
		return nil
	})
	return out, err
}

// tableRows returns every visible row of R's table, by step.
func tableRows[R schema.Row](ctx context.Context, v *Visible) (map[int][]R, error) {
	shards, err := v.Shards(ctx, schema.TableOf[R]())
	if err != nil {
		return nil, err
	}
	pieces, err := rowsOf[R](ctx, v, shards)
	if err != nil {
		return nil, err
	}
	out := map[int][]R{}
	for i, s := range shards {
		out[s.Step] = append(out[s.Step], pieces[i]...)
	}
	return out, nil
}

// stepRows returns one step's rows of R's table. With columns, only those are read.
func stepRows[R schema.Row](ctx context.Context, v *Visible, step int, columns ...string) ([]R, error) {
	shards, err := v.StepShards(ctx, step, schema.TableOf[R]())
	if err != nil {
		return nil, err
	}
	pieces, err := rowsOf[R](ctx, v, shards, columns...)
	var out []R
	for _, p := range pieces {
		out = append(out, p...)
	}
	return out, err
}

// stepBatch returns one step's training batch.
func stepBatch(ctx context.Context, v *Visible, step int) ([]schema.BatchRow, error) {
	shards, err := v.StepShards(ctx, step, schema.Batch)
	if err != nil {
		return nil, err
	}
	var out []schema.BatchRow
	for _, s := range shards {
		data, err := v.Bytes(ctx, s)
		if err != nil {
			return nil, err
		}
		rows, err := schema.DecodeBatch(data)
		if err != nil {
			return nil, fmt.Errorf("%w: %s: %w", commit.ErrDamaged, s.Key, err)
		}
		out = append(out, rows...)
	}
	return out, nil
}
