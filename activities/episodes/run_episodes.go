package episodes

import (
	"context"
	"log/slog"

	"github.com/ropewalk/ropewalk/activities/failure"
	"github.com/ropewalk/ropewalk/activities/stage"
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
// answers of episodes that have ended are graded and judged meanwhile (see early.Verdicts).
type RunEpisodes struct{ *stage.Worker }

// Execute runs what the shard has not committed yet.
func (a RunEpisodes) Execute(ctx context.Context, _ *stage.Env, in api.EpisodesInput) (out api.Episodes, err error) {
	err = a.Group(ctx, in.Scope, in.Shard, in.Sent, &out.Spent, func(r *stage.Runner) error {
		s := &shardRun{a.Worker, in}
		span := s.begin(r)
		err := Open(r.Context, a.Worker, in, r.Env)
		if err == nil {
			err = step.Shard.Body(r, &in, &out)
		}
		if err != nil {
			span.End(failure.KindOf(r.Context, failure.Classify(err)))
			return err
		}
		span.End("")
		return nil
	})
	return out, err
}

// shardRun is one execution of RunEpisodes.
type shardRun struct {
	worker *stage.Worker
	in     api.EpisodesInput
}

// begin begins the span of the activity, under which its stages and its flow have theirs. Lines of the log that
// belong to none of these are about the rollout.
func (s *shardRun) begin(r *stage.Runner) *trace.Span {
	ctx := s.worker.Tracer.Step(r.Context, s.in.Run, s.in.Step, s.in.Gen)
	ctx, span := trace.Start(ctx, "episodes", stage.Whereabouts(s.in.Scope, r.Own)...)
	r.Context = logs.With(ctx, append(trace.IDs(ctx), slog.String("stage", schema.StageRollout))...)
	return span
}

// Open begins what works ahead of a shard's stages; it closes with the environment.
func Open(ctx context.Context, d *stage.Worker, in api.EpisodesInput, e *stage.Env) error {
	s := &shardRun{d, in}
	recipe, err := s.worker.Recipes.Recipe(ctx, s.in.Scope)
	if err != nil {
		return err
	}
	if err := s.worker.Execution.RunsCalls(recipe); err != nil {
		return err
	}
	if e.Verdicts, err = s.openVerdicts(ctx, recipe); err != nil {
		return err
	}
	e.AtEnd(e.Verdicts.Close)
	f, err := s.ahead(ctx, recipe, e)
	if err != nil {
		return err
	}
	if f != nil {
		e.Flow = &stage.Flow{Flow: f.Flow, Committed: f.segments.committed}
		e.AtEnd(func() { f.close(ctx, e.Done) })
		return nil
	}
	e.Turnwise = e.Progress.ByTurns()
	e.AtEnd(func() { e.Progress.Flow.Store(nil) })
	return nil
}
