package stage

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/ropewalk/ropewalk/activities/record"
	"github.com/ropewalk/ropewalk/activities/resolver"
	"github.com/ropewalk/ropewalk/activities/resource"
	"github.com/ropewalk/ropewalk/internal/metrics"
	"github.com/ropewalk/ropewalk/internal/trace"
)

// Worker is what the stages of one worker share.
type Worker struct {
	record.Records
	// Recipes reads recipes, Execution runs programs, and Engines train and generate; see Draft.Trainer.
	Recipes   resolver.Recipes
	Execution resource.Execution
	Engines   resource.Engines
	// Held keeps the episodes of shards between their turns.
	Held *resource.Episodes
	// Code is the digest of the program: the record says which code made what.
	Code string
	// Activities are the worker's stages, by the names of their activities.
	Activities map[string]Activity
	// SegmentEvery is how often finished turns of a shard are kept, and LookEvery how often a shard looks for a newer
	// policy; 0: the usual time.
	SegmentEvery, LookEvery time.Duration
	// Counts counts executions of stages; nil: nothing is counted.
	Counts *metrics.Stages
	Tracer *trace.Tracer // nil: nothing is traced
	// Superseded reports whether another build of this worker's deployment is current; nil: it belongs to none.
	Superseded func(ctx context.Context) (bool, error)
}

// Close ends the trajectories' interpreters, the sessions with MCP servers and the PyTorch engines.
func (d *Worker) Close() error {
	stats := d.Record.CacheStats()
	slog.Info("read cache", "hits", stats.Hits, "misses", stats.Misses, "objects", stats.Objects, "bytes", stats.Bytes)
	return errors.Join(d.Engines.Pool.Close(), d.Execution.Close())
}
