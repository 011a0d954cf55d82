package activities

import (
	"context"
	"log/slog"

	"github.com/ropewalk/ropewalk/internal/logs"
	"github.com/ropewalk/ropewalk/internal/step"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/internal/trace"
	"github.com/ropewalk/ropewalk/schema"
)

// RunEpisodes takes one shard from its prompts to its rewards in one activity, for recipes with rollout.mode
// interleaved. It commits every turn, every turn's tool calls, the trajectories, the verdicts on them and the rewards
// at the places where the activities of mode staged commit them, with the same rows. So an attempt continues where an
// earlier one was lost, and nothing that reads a record knows the mode.
//
// A turn is committed when all of the shard's episodes have it, but they do not wait for that: a flow takes each to its
// end meanwhile, and keeps finished turns in segments. What the flow cannot do is done turn by turn (see ahead). The
// answers of episodes that have ended are graded and judged meanwhile (see verifier).
type RunEpisodes struct{ *Deps }

// Execute runs what the shard has not committed yet.
func (a RunEpisodes) Execute(ctx context.Context, _ *Env, in api.EpisodesInput) (out api.Episodes, err error) {
	err = a.group(ctx, in.Scope, in.Shard, in.Sent, &out.Spent, func(r *runner) error {
		s := &shardRun{a.Deps, in}
		span := s.begin(r)
		err := a.openShard(r.ctx, in, r.env)
		if err == nil {
			err = step.Shard.Body(r, &in, &out)
		}
		if err != nil {
			span.End(failureKind(r.ctx, classify(err)))
			return err
		}
		span.End("")
		return nil
	})
	return out, err
}

// shardRun is one execution of RunEpisodes.
type shardRun struct {
	deps *Deps
	in   api.EpisodesInput
}

// begin begins the span of the activity, under which its stages and its flow have theirs. Lines of the log that
// belong to none of these are about the rollout.
func (s *shardRun) begin(r *runner) *trace.Span {
	ctx := s.deps.Tracer.Step(r.ctx, s.in.Run, s.in.Step, s.in.Gen)
	ctx, span := trace.Start(ctx, "episodes", whereabouts(s.in.Scope, r.own)...)
	r.ctx = logs.With(ctx, append(trace.IDs(ctx), slog.String("stage", schema.StageRollout))...)
	return span
}

// openShard begins what works ahead of a shard's stages; it closes with the environment.
func (d *Deps) openShard(ctx context.Context, in api.EpisodesInput, e *Env) error {
	s := &shardRun{d, in}
	recipe, err := s.deps.Recipes.recipe(ctx, s.in.Scope)
	if err != nil {
		return err
	}
	if err := s.deps.Execution.runsCalls(recipe); err != nil {
		return err
	}
	if e.verdicts, err = s.verifier(ctx, recipe); err != nil {
		return err
	}
	e.atEnd(e.verdicts.close)
	f, err := s.ahead(ctx, recipe, e)
	if err != nil {
		return err
	}
	if f != nil {
		e.flow = &Flow{f.Flow, f.segments.committed}
		e.atEnd(func() { f.close(ctx, e.done) })
		return nil
	}
	e.turnwise = e.progress.byTurns()
	e.atEnd(func() { e.progress.flow.Store(nil) })
	return nil
}
