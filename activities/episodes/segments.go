package episodes

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ropewalk/ropewalk/activities/stage"
	"github.com/ropewalk/ropewalk/internal/rescue"
	"github.com/ropewalk/ropewalk/rollout"
	"github.com/ropewalk/ropewalk/schema"
)

// segmentEvery is how often a shard's finished turns are kept as a segment. A worker that dies loses at most what was
// done since the last one.
const segmentEvery = 5 * time.Second

// segments keeps the finished turns of a shard in the store until the shard is committed. They serve an attempt that
// continues after a lost worker; nothing else reads them, so that an error of theirs is a warning.
type segments struct {
	worker         *stage.Worker
	prefix         string
	attempt        string
	every          time.Duration
	number         int
	mark           rollout.FlowMark
	turns, results atomic.Int64 // committed
	found          bool         // an earlier attempt has kept some
	stop           chan struct{}
	stopped        sync.WaitGroup
}

// committed says how many turns, and results of turns, of all episodes are committed.
func (g *segments) committed(turns, results int) {
	g.turns.Store(int64(turns))
	g.results.Store(int64(results))
}

// keep saves segments until end.
func (g *segments) keep(ctx context.Context, f *rollout.Flow) {
	g.stop = make(chan struct{})
	g.stopped.Go(func() {
		tick := time.NewTicker(g.every)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				if err := rescue.Do(func() error { return g.save(ctx, f) }); err != nil && ctx.Err() == nil {
					slog.WarnContext(ctx, "keep a segment of a shard", "segments", g.prefix, "error", err)
				}
			case <-g.stop:
				return
			case <-ctx.Done():
				return
			}
		}
	})
}

// save puts what is new as one segment. After an error, the next segment has its rows too. Turns come before their
// results: a worker that dies in between leaves turns without results, and no results without their turn. For the same
// reason, a tree's branch rows come before its turns.
func (g *segments) save(ctx context.Context, f *rollout.Flow) error {
	rows, beyond, err := f.Unsaved(g.mark, int(g.turns.Load()), int(g.results.Load()))
	if err != nil || len(rows.Turns)+len(rows.Calls)+len(rows.Transitions) == 0 {
		return err
	}
	g.number++ // the keys of a put that failed may be taken
	if err := saveRows(ctx, g, rows.Branches); err != nil {
		return err
	}
	if err := saveRows(ctx, g, rows.Turns); err != nil {
		return err
	}
	if err := saveRows(ctx, g, rows.Calls); err != nil {
		return err
	}
	if err := saveRows(ctx, g, rows.Transitions); err != nil {
		return err
	}
	g.mark = beyond
	return nil
}

func saveRows[R schema.Row](ctx context.Context, g *segments, rows []R) error {
	if len(rows) == 0 {
		return nil
	}
	data, err := schema.Encode(rows)
	if err != nil {
		return err
	}
	return g.worker.Store.PutIfAbsent(ctx, schema.SegmentKey(g.prefix, g.attempt, g.number, schema.TableOf[R]()), data)
}

// read returns the rows of each earlier attempt, the latest first. What cannot be read is left out.
func (g *segments) read(ctx context.Context) []rollout.Rows {
	listed, err := g.worker.Store.List(ctx, g.prefix)
	if err != nil {
		slog.WarnContext(ctx, "list the segments of a shard", "segments", g.prefix, "error", err)
		return nil
	}
	g.found = len(listed) > 0
	by := map[string]*rollout.Rows{}
	for _, o := range listed {
		_, _, attempt, table, ok := schema.ParseSegmentKey(o.Key)
		if !ok {
			continue
		}
		if by[attempt] == nil {
			by[attempt] = &rollout.Rows{}
		}
		if err := g.add(ctx, by[attempt], o.Key, table); err != nil {
			slog.WarnContext(ctx, "read a segment of a shard", "segment", o.Key, "error", err)
		}
	}
	var out []rollout.Rows
	for _, attempt := range slices.Backward(slices.Sorted(maps.Keys(by))) {
		out = append(out, *by[attempt])
	}
	return out
}

// add adds the rows of one object.
func (g *segments) add(ctx context.Context, to *rollout.Rows, key string, table schema.Table) error {
	data, err := g.worker.Store.Get(ctx, key)
	if err != nil {
		return err
	}
	switch table {
	case schema.Turns:
		return appendRows(&to.Turns, data)
	case schema.Branches:
		return appendRows(&to.Branches, data)
	case schema.ToolCalls:
		return appendRows(&to.Calls, data)
	case schema.Transitions:
		return appendRows(&to.Transitions, data)
	}
	return fmt.Errorf("segments have no table %s", table)
}

func appendRows[R schema.Row](to *[]R, data []byte) error {
	rows, err := schema.Decode[R](data)
	if err == nil {
		*to = append(*to, rows...)
	}
	return err
}

// end stops keeping. If the shard is committed, it deletes what was kept; otherwise it keeps what there is.
func (g *segments) end(ctx context.Context, f *rollout.Flow, done bool) {
	close(g.stop)
	g.stopped.Wait()
	if !done {
		if err := g.save(ctx, f); err != nil && ctx.Err() == nil {
			slog.WarnContext(ctx, "keep a segment of a shard", "segments", g.prefix, "error", err)
		}
		return
	}
	if !g.found && g.number == 0 {
		return
	}
	listed, err := g.worker.Store.List(ctx, g.prefix)
	for _, o := range listed {
		err = errors.Join(err, g.worker.Store.Delete(ctx, o.Key))
	}
	if err != nil && ctx.Err() == nil {
		slog.WarnContext(ctx, "delete the segments of a shard", "segments", g.prefix, "error", err)
	}
}
