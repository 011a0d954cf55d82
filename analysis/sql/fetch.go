package sql

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/analysis/cache"
	"github.com/ropewalk/ropewalk/schema"
)

// fetches is how many shards are fetched at once.
const fetches = 16

// placed is a shard in a file.
type placed struct {
	analysis.Shard
	file string
}

// fetch brings the visible shards of a table to this machine.
func fetch(ctx context.Context, runs []*analysis.Visible, table schema.Table, c *cache.Cache) ([]placed, error) {
	var out []placed
	for _, run := range runs {
		shards, err := run.Shards(ctx, table)
		if err != nil {
			return nil, err
		}
		first := len(out)
		for _, s := range shards {
			out = append(out, placed{Shard: s})
		}
		g, ctx := errgroup.WithContext(ctx)
		g.SetLimit(fetches)
		for i := first; i < len(out); i++ {
			g.Go(func() (err error) {
				out[i].file, err = local(ctx, run, out[i].Shard, c)
				return err
			})
		}
		if err := g.Wait(); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// local returns the path of a shard's file, fetched if it is neither here nor in the cache yet.
func local(ctx context.Context, run *analysis.Visible, s analysis.Shard, c *cache.Cache) (string, error) {
	if path, ok, err := run.File(ctx, s); ok || err != nil {
		return path, err
	}
	ext := s.Table.Ext()
	if path, ok := c.Find(s.Digest, ext, s.Bytes); ok {
		return path, nil
	}
	data, err := run.Bytes(ctx, s)
	if err != nil {
		return "", err
	}
	if path, ok := c.Find(s.Digest, ext, s.Bytes); ok { // a reader with the same cache has kept it
		return path, nil
	}
	return c.Put(s.Digest, ext, data)
}

// emptyFile puts a shard without rows into the cache. Every view reads it, so that a table has
// its columns and types though nothing of it is committed, and those of this program's schema
// version where older shards lack a column.
func emptyFile(table schema.Table, c *cache.Cache) (string, error) {
	data, err := encodeEmpty(table)
	if err != nil {
		return "", fmt.Errorf("make an empty shard of table %s: %w", table, err)
	}
	return c.Put(schema.Digest(data), table.Ext(), data)
}

func encodeEmpty(table schema.Table) ([]byte, error) {
	switch table {
	case schema.Prompts:
		return schema.Encode[schema.PromptRow](nil)
	case schema.Trajectories:
		return schema.Encode[schema.TrajectoryRow](nil)
	case schema.Turns:
		return schema.Encode[schema.TurnRow](nil)
	case schema.ToolCalls:
		return schema.Encode[schema.ToolCallRow](nil)
	case schema.Gradings:
		return schema.Encode[schema.GradingRow](nil)
	case schema.Rewards:
		return schema.Encode[schema.RewardRow](nil)
	case schema.Selection:
		return schema.Encode[schema.SelectionRow](nil)
	case schema.TokenOutputs:
		return schema.Encode[schema.TokenOutputsRow](nil)
	case schema.Replay:
		return schema.Encode[schema.ReplayRow](nil)
	case schema.Baselines:
		return schema.Encode[schema.BaselineRow](nil)
	case schema.Updates:
		return schema.Encode[schema.UpdateRow](nil)
	case schema.Evaluations:
		return schema.Encode[schema.EvaluationRow](nil)
	case schema.Timings:
		return schema.Encode[schema.TimingRow](nil)
	}
	return nil, fmt.Errorf("table %q has no view", table)
}
