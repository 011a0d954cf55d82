package episodes

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"time"

	"github.com/ropewalk/ropewalk/activities/resource"
	"github.com/ropewalk/ropewalk/activities/stage"
	"github.com/ropewalk/ropewalk/internal/enginepool"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/rollout"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/tool"
)

// flow is a flow of a shard's episodes and what it uses.
type flow struct {
	*rollout.Flow
	rows     *enginepool.Rows
	segments *segments
	progress *stage.Progress
	stop     func() // ends the report of the sampler's capacity
}

// flows reports whether a recipe's groups can go on without one another. Imported episodes have happened; summaries of
// pages need the engine in the middle of a call. Episodes of one turn have nothing to wait for, and one batch of all of
// them is faster on the CPU engine.
func flows(r *recipes.Recipe) bool {
	local := !r.Engine.Declaration().Leased && r.Rollout.MaxTurns > 1
	return (local || len(r.Engine.Servers) > 0) && !r.Environment.Imported() && r.SummaryTokens() == 0
}

// ahead begins a flow of the shard's episodes, from what is committed and what earlier attempts have kept. It returns
// nil if the episodes go on turn by turn: because of the recipe, because the engine's numbers depend on the rows that
// generate together, or because this worker's sandbox is too weak, for which the stage sandbox refuses the recipe.
func (s *shardRun) ahead(ctx context.Context, recipe *recipes.Recipe, e *stage.Env) (*flow, error) {
	if !flows(recipe) || s.worker.Execution.Isolates(recipe) != nil {
		return nil, nil
	}
	sampler, release, err := s.worker.Engines.Pool.Sampler(ctx, s.in.Scope.Run, recipe, false)
	if err != nil {
		return nil, err
	}
	release(false) // neither the CPU engine nor servers are leased
	rows := sampler.Rows(recipe.Rollout.MaxTokens)
	if rows == nil {
		return nil, nil
	}
	f, err := s.beginFlow(ctx, recipe, rows, e)
	if err != nil {
		rows.Close()
	}
	return f, err
}

func (s *shardRun) beginFlow(ctx context.Context, recipe *recipes.Recipe, rows *enginepool.Rows, e *stage.Env) (*flow,
	error) {
	box, err := s.worker.Execution.ToolboxFor(recipe, s.worker.Execution.Notebooks, nil, nil)
	if err != nil {
		return nil, err
	}
	last, turns, results, err := committedTurns(ctx, s.worker, s.in)
	if err != nil {
		return nil, err
	}
	loop, episodes, err := AsOf(ctx, s.worker, recipe, s.in.Shard, s.in.Prompts, api.Past{Last: last})
	if err != nil {
		return nil, err
	}
	kept := &segments{worker: s.worker, prefix: schema.SegmentsPrefix(s.in.Scope.Run, s.in.Scope.Step, s.in.Scope.Gen,
		s.in.Shard), attempt: fmt.Sprintf("%013d-%s", time.Now().UnixMilli(), rand.Text()[:8]),
		mark: rollout.FlowMark{}, every: cmp.Or(s.worker.SegmentEvery, segmentEvery)}
	kept.committed(turns, results)
	trees, applied := (*rollout.Kept)(nil), 0
	if recipe.Rollout.Tree == nil {
		applied = loop.Resume(ctx, episodes, kept.read(ctx))
	} else {
		kept.mark = rollout.MarkOf(episodes)
		trees = rollout.KeptOfTrees(kept.read(ctx))
		applied = trees.Len()
	}
	if applied > 0 {
		slog.InfoContext(ctx, "a shard goes on from segments of an earlier attempt", "segments", kept.prefix, "applied",
			applied)
	}
	sampling, err := NewSamplers(ctx, s.worker, s.in.Scope, recipe, s.in.Policy)
	if err != nil {
		return nil, err
	}
	options := rollout.FlowOptions{Version: s.in.Policy.Digest, Box: tool.Sharing(box),
		Scope: resource.CallScope(s.in.Scope), Ended: func(one *rollout.Episode) { e.Verdicts.End(one) }, Kept: trees,
		Respond: func(ctx context.Context, row policy.BatchRow) (policy.Generated, string, error) {
			by := sampling.Now(ctx)
			out, err := rows.Generate(ctx, stage.Version(by), row)
			return out, by.Digest, err
		}}
	if box.Stateful() {
		options.AtOnce = s.worker.Execution.CellsAtOnce()
	}
	f := &flow{Flow: loop.NewFlow(ctx, episodes, options), rows: rows, segments: kept, progress: e.Progress,
		stop: e.Progress.Samples(rows.Sampler())}
	kept.keep(ctx, f.Flow)
	e.Progress.Follow(f.Flow, time.Now())
	return f, nil
}

// close ends the flow. done says that the shard is committed, so that its segments are of no more use.
func (f *flow) close(ctx context.Context, done bool) {
	f.Flow.Close()
	f.rows.Close()
	f.stop()
	f.progress.Flow.Store(nil)
	f.segments.end(ctx, f.Flow, done)
}

// committedTurns finds the last committed manifest of a shard's turns and tool calls, and how many turns, and results
// of turns, are committed.
func committedTurns(ctx context.Context, d *stage.Worker, in api.EpisodesInput) (last schema.Ref, turns, results int,
	err error) {
	for ; turns < in.MaxTurns; turns++ {
		at := stage.Spec{Scope: in.Scope, Stage: schema.StageRollout, Turn: turns, Shard: in.Shard}
		_, ref, found, err := d.Record.Lookup(ctx, at.Place())
		if err != nil || !found {
			return last, turns, results, err
		}
		last = ref
		at.Stage = schema.StageSandbox
		if _, ref, found, err = d.Record.Lookup(ctx, at.Place()); err != nil {
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
