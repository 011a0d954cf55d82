package analysis

import (
	"context"
	"fmt"
	"slices"

	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/internal/rescue"
	"github.com/ropewalk/ropewalk/schema"
)

// shardsAtOnce is how many shards are decoded at once; each is held in memory.
const shardsAtOnce = 4

// Bytes returns a shard's bytes, checked against its digest.
func (v *Visible) Bytes(ctx context.Context, s Shard) ([]byte, error) { return v.record.shard(ctx, s) }

func (r *Record) shard(ctx context.Context, s Shard) ([]byte, error) {
	data, err := r.blob(ctx, s.Key, s.Digest, s.Table.Ext())
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

// decoded decodes shards; the rows are in the order of the shards, one slice each.
func decoded[R any](ctx context.Context, r *Record, shards []Shard, decode func([]byte) ([]R, error)) ([][]R, error) {
	out := make([][]R, len(shards))
	err := rescue.Each(ctx, shardsAtOnce, len(shards), func(ctx context.Context, i int) error {
		data, err := r.shard(ctx, shards[i])
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

// rowsOf returns the rows of shards of R's table. With columns, only those are read.
func rowsOf[R schema.Row](ctx context.Context, r *Record, shards []Shard, columns ...string) ([]R, error) {
	decode := schema.Decode[R]
	if len(columns) > 0 {
		decode = func(data []byte) ([]R, error) { return schema.DecodeColumns[R](data, columns...) }
	}
	pieces, err := decoded(ctx, r, shards, decode)
	return slices.Concat(pieces...), err
}

// rowsIn returns the rows of R's table that a manifest commits. With columns, only those are read.
func rowsIn[R schema.Row](ctx context.Context, r *Record, m schema.Manifest, columns ...string) ([]R, error) {
	return rowsOf[R](ctx, r, shardsOf(schema.TableOf[R](), []schema.Manifest{m}), columns...)
}

// tableRows returns every visible row of R's table, by step.
func tableRows[R schema.Row](ctx context.Context, v *Visible) (map[int][]R, error) {
	shards, err := v.Shards(ctx, schema.TableOf[R]())
	if err != nil {
		return nil, err
	}
	pieces, err := decoded(ctx, v.record, shards, schema.Decode[R])
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
	return rowsOf[R](ctx, v.record, shards, columns...)
}

// stepBatch returns one step's training batch.
func stepBatch(ctx context.Context, v *Visible, step int) ([]schema.BatchRow, error) {
	shards, err := v.StepShards(ctx, step, schema.Batch)
	if err != nil {
		return nil, err
	}
	pieces, err := decoded(ctx, v.record, shards, schema.DecodeBatch)
	return slices.Concat(pieces...), err
}
