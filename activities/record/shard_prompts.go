package record

import (
	"context"

	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/internal/prompts"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/schema"
)

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
