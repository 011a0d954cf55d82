package activities

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ropewalk/ropewalk/activities/api"
	"github.com/ropewalk/ropewalk/internal/enginepool"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/rollout"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/tool"
)

// segmentEvery is how often a shard's finished turns are kept as a segment. A worker that dies loses at most what was
// done since the last one.
const segmentEvery = 5 * time.Second

// aheadKey is the context key of the flow that works ahead of the stages of a shard.
type aheadKey struct{}

// aheadOf returns the flow that works ahead of the stages under ctx, or nil.
func aheadOf(ctx context.Context) *rollout.Flow {
	f, _ := ctx.Value(aheadKey{}).(*rollout.Flow)
	return f
}

// flow takes the episodes of a shard to their ends while the stages commit their turns.
type flow struct {
	*rollout.Flow
	rows     *enginepool.Rows
	segments *segments
	progress *progress
	stop     func() // ends the report of the sampler's capacity
}

// flows reports whether a recipe's episodes can go on without one another. In a tree, the episodes of a group depend on
// each other; imported ones have happened; summaries of pages need the engine in the middle of a call. Episodes of one
// turn have nothing to wait for, and one batch of all of them is faster on the CPU engine.
func flows(r *recipes.Recipe) bool {
	local := r.Engine.Kind != recipes.EngineTorch && r.Engine.Kind != recipes.EngineTinker && r.Rollout.MaxTurns > 1
	return (local || len(r.Engine.Servers) > 0) && r.Rollout.Tree == nil && !r.Environment.Imported() &&
		r.SummaryTokens() == 0
}

// ahead begins a flow of the shard's episodes, from what is committed and what earlier attempts have kept. It returns
// nil if the episodes go on turn by turn: because of the recipe, or because the engine's numbers depend on the rows
// that generate together.
func (s *shardRun) ahead(ctx context.Context, recipe *recipes.Recipe, p *progress) (*flow, error) {
	if !flows(recipe) {
		return nil, nil
	}
	sampler, release, err := s.deps.engines.Sampler(ctx, s.in.Scope.Run, recipe, false)
	if err != nil {
		return nil, err
	}
	release(false) // neither the CPU engine nor servers are leased
	rows := sampler.Rows(recipe.Rollout.MaxTokens)
	if rows == nil {
		return nil, nil
	}
	f, err := s.begin(ctx, recipe, rows, p)
	if err != nil {
		rows.Close()
	}
	return f, err
}

func (s *shardRun) begin(ctx context.Context, recipe *recipes.Recipe, rows *enginepool.Rows, p *progress) (*flow,
	error) {
	box, err := s.deps.toolboxFor(recipe, s.deps.Notebooks, nil, nil)
	if err != nil {
		return nil, err
	}
	last, turns, results, err := s.deps.committedTurns(ctx, s.in)
	if err != nil {
		return nil, err
	}
	loop, episodes, err := s.deps.episodes(ctx, recipe, s.in.Shard, s.in.Prompts, api.Past{Last: last})
	if err != nil {
		return nil, err
	}
	kept := &segments{deps: s.deps, prefix: schema.SegmentsPrefix(s.in.Scope.Run, s.in.Scope.Step, s.in.Scope.Gen,
		s.in.Shard), attempt: fmt.Sprintf("%013d-%s", time.Now().UnixMilli(), rand.Text()[:8]),
		mark: rollout.FlowMark{}, every: cmp.Or(s.deps.segmentEvery, segmentEvery)}
	kept.committed(turns, results)
	if episodes, err = kept.restore(ctx, loop, episodes, func() ([]*rollout.Episode, error) {
		_, again, err := s.deps.episodes(ctx, recipe, s.in.Shard, s.in.Prompts, api.Past{Last: last})
		return again, err
	}); err != nil {
		return nil, err
	}
	at := version(s.in.Policy)
	options := rollout.FlowOptions{Version: s.in.Policy.Digest, Box: tool.Sharing(box), Scope: callScope(s.in.Scope),
		Respond: func(ctx context.Context, row policy.BatchRow) (policy.Generated, error) {
			return rows.Generate(ctx, at, row)
		}}
	if box.Stateful() {
		options.AtOnce = s.deps.cellsAtOnce()
	}
	f := &flow{Flow: loop.NewFlow(ctx, episodes, options), rows: rows, segments: kept, progress: p,
		stop: p.samples(rows.Sampler())}
	kept.keep(ctx, f.Flow)
	p.follow(f.Flow, time.Now())
	return f, nil
}

// close ends the flow. done says that the shard is committed, so that its segments are of no more use.
func (f *flow) close(ctx context.Context, done bool) {
	f.Flow.Close()
	f.rows.Close()
	f.stop()
	f.progress.flow.Store(nil)
	f.segments.end(ctx, f.Flow, done)
}

// committedTurns finds the last committed manifest of a shard's turns and tool calls, and how many turns, and results
// of turns, are committed.
func (d *Deps) committedTurns(ctx context.Context, in api.EpisodesInput) (last schema.Ref, turns, results int,
	err error) {
	for ; turns < in.MaxTurns; turns++ {
		at := spec{scope: in.Scope, stage: api.StageRollout, turn: turns, shard: in.Shard}
		_, ref, found, err := d.Record.Lookup(ctx, at.place())
		if err != nil || !found {
			return last, turns, results, err
		}
		last = ref
		at.stage = api.StageSandbox
		if _, ref, found, err = d.Record.Lookup(ctx, at.place()); err != nil {
			return last, turns, results, err
		}
		if found { // a summary has no calls
			last = ref
		}
		results = turns
		if found {
			results++
		}
	}
	return last, turns, results, nil
}

// segments keeps the finished turns of a shard in the store until the shard is committed. They serve an attempt that
// continues after a lost worker; nothing else reads them, so that an error of theirs is a warning.
type segments struct {
	deps           *Deps
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
				if err := g.save(ctx, f); err != nil && ctx.Err() == nil {
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

// save puts what is new as one segment. Turns come before their results, so that no result is without its turn.
func (g *segments) save(ctx context.Context, f *rollout.Flow) error {
	rows, err := f.Unsaved(g.mark, int(g.turns.Load()), int(g.results.Load()))
	if err != nil || len(rows.Turns)+len(rows.Calls)+len(rows.Transitions) == 0 {
		return err
	}
	g.number++
	return errors.Join(putSegment(ctx, g, rows.Turns), putSegment(ctx, g, rows.Calls),
		putSegment(ctx, g, rows.Transitions))
}

func putSegment[R schema.Row](ctx context.Context, g *segments, rows []R) error {
	if len(rows) == 0 {
		return nil
	}
	data, err := schema.Encode(rows)
	if err != nil {
		return err
	}
	return g.deps.Store.PutIfAbsent(ctx, schema.SegmentKey(g.prefix, g.attempt, g.number, schema.TableOf[R]()), data)
}

// restore applies what earlier attempts have kept to the committed episodes. again makes the committed episodes once
// more, where kept rows turn out not to continue them.
func (g *segments) restore(ctx context.Context, loop *rollout.Loop, episodes []*rollout.Episode,
	again func() ([]*rollout.Episode, error)) ([]*rollout.Episode, error) {
	attempts, err := g.read(ctx)
	if err != nil {
		slog.WarnContext(ctx, "read the segments of a shard", "segments", g.prefix, "error", err)
		return episodes, nil
	}
	if len(attempts) == 0 {
		return episodes, nil
	}
	out, err := loop.Resume(episodes, attempts)
	if err == nil {
		return out, nil
	}
	slog.WarnContext(ctx, "go on from the committed turns: segments do not continue them", "segments", g.prefix,
		"error", err)
	return again()
}

// read returns the rows of each earlier attempt, the latest first.
func (g *segments) read(ctx context.Context) ([]rollout.Rows, error) {
	listed, err := g.deps.Store.List(ctx, g.prefix)
	if err != nil {
		return nil, err
	}
	g.found = len(listed) > 0
	by := map[string]*rollout.Rows{}
	var names []string
	for _, o := range listed {
		_, _, attempt, table, ok := schema.ParseSegmentKey(o.Key)
		if !ok {
			continue
		}
		rows := by[attempt]
		if rows == nil {
			rows = &rollout.Rows{}
			by[attempt], names = rows, append(names, attempt)
		}
		data, err := g.deps.Store.Get(ctx, o.Key)
		if err != nil {
			return nil, err
		}
		switch table {
		case schema.Turns:
			err = appendRows(&rows.Turns, data)
		case schema.ToolCalls:
			err = appendRows(&rows.Calls, data)
		case schema.Transitions:
			err = appendRows(&rows.Transitions, data)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", o.Key, err)
		}
	}
	slices.Sort(names)
	slices.Reverse(names)
	out := make([]rollout.Rows, len(names))
	for i, name := range names {
		out[i] = *by[name]
	}
	return out, nil
}

func appendRows[R schema.Row](to *[]R, data []byte) error {
	rows, err := schema.Decode[R](data)
	*to = append(*to, rows...)
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
	listed, err := g.deps.Store.List(ctx, g.prefix)
	for _, o := range listed {
		err = errors.Join(err, g.deps.Store.Delete(ctx, o.Key))
	}
	if err != nil && ctx.Err() == nil {
		slog.WarnContext(ctx, "delete the segments of a shard", "segments", g.prefix, "error", err)
	}
}
