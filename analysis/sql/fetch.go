package sql

import (
	"context"
	"fmt"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/internal/rescue"
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
func fetch(ctx context.Context, runs []*analysis.Visible, table schema.Table, c *analysis.Cache) ([]placed, error) {
	var out []placed
	for _, run := range runs {
		shards, err := run.Shards(ctx, table)
		if err != nil {
			return nil, err
		}
		files, err := bring(ctx, run, shards, c)
		if err != nil {
			return nil, err
		}
		out = append(out, files...)
	}
	return out, nil
}

// bring brings shards to this machine.
func bring(ctx context.Context, run *analysis.Visible, shards []analysis.Shard, c *analysis.Cache) ([]placed, error) {
	out := make([]placed, len(shards))
	err := rescue.Each(ctx, fetches, len(shards), func(ctx context.Context, i int) (err error) {
		out[i].Shard = shards[i]
		out[i].file, err = local(ctx, run, shards[i], c)
		return err
	})
	return out, err
}

// local returns the path of a shard's file, fetched if it is neither here nor in the cache yet.
func local(ctx context.Context, run *analysis.Visible, s analysis.Shard, c *analysis.Cache) (string, error) {
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
func emptyFile(table schema.Table, c *analysis.Cache) (string, error) {
	data, err := schema.EncodeEmpty(table)
	if err != nil {
		return "", fmt.Errorf("make an empty shard of table %s: %w", table, err)
	}
	return c.Put(schema.Digest(data), table.Ext(), data)
}
