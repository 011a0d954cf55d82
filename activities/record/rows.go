package record

import (
	"context"
	"fmt"

	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/internal/prompts"
	"github.com/ropewalk/ropewalk/internal/refusal"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/schema"
)

// ReadBatch returns the batch that a step's advantage stage has committed.
func (r Records) ReadBatch(ctx context.Context, ref schema.Ref) ([]schema.BatchRow, error) {
	m, err := r.Record.Read(ctx, ref)
	if err != nil {
		return nil, err
	}
	batch, found, err := r.BatchOf(ctx, m, schema.Batch, schema.DecodeBatch)
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, refusal.Corruptf("%s commits no batch", ref.Key)
	}
	for _, row := range batch {
		if row.OldLogProbs == nil {
			return nil,
				refusal.Unusablef("row %s has no log-probabilities of the policy that wrote it (imported); an "+
					"importance ratio needs them, so such rows cannot be trained on", row.TrajectoryID)
		}
	}
	return batch, nil
}

// BatchOf reads the only Arrow shard of a table that a manifest commits, and reports whether the manifest commits
// any.
func (r Records) BatchOf(ctx context.Context, m schema.Manifest, table schema.Table,
	decode func([]byte) ([]schema.BatchRow, error)) (rows []schema.BatchRow, found bool, err error) {
	shards := m.ShardsOf(table)
	if len(shards) == 0 {
		return nil, false, nil
	}
	data, err := r.Record.ReadShard(ctx, shards[0])
	if err != nil {
		return nil, true, err
	}
	if rows, err = decode(data); err != nil {
		return nil, true, fmt.Errorf("%s: %w", shards[0].Key, err)
	}
	return rows, true, nil
}

// ReadReplayBatch returns a step's replay batch; nothing if its buffer was not full.
func (r Records) ReadReplayBatch(ctx context.Context, m schema.Manifest) ([]schema.BatchRow, error) {
	rows, _, err := r.BatchOf(ctx, m, schema.ReplayBatch, schema.DecodeReplayBatch)
	return rows, err
}

// PromptsOf reads the prompts of one shard from only those files that hold some of them.
func (r Records) PromptsOf(ctx context.Context, ref schema.Ref, shard int, method recipes.Rollout) ([]schema.PromptRow,
	error) {
	m, err := r.Record.Read(ctx, ref)
	if err != nil {
		return nil, err
	}
	m.Shards = prompts.FilesOfShard(m.ShardsOf(schema.Prompts), shard, method)
	rows, err := commit.Rows[schema.PromptRow](ctx, r.Record, m)
	if err != nil {
		return nil, err
	}
	return prompts.OfShard(rows, shard, method)
}
