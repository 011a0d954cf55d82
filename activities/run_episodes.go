package activities

import (
	"cmp"
	"context"
	"log/slog"

	"github.com/ropewalk/ropewalk/internal/logs"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/internal/trace"
	"github.com/ropewalk/ropewalk/recipes"
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
func (a RunEpisodes) Execute(ctx context.Context, in api.EpisodesInput) (api.Episodes, error) {
	s := &shardRun{parts: parts{timeouts: in.Timeouts}, deps: a.Deps, in: in,
		own: api.Timing{Shard: in.Shard, Turn: -1}}
	err := a.tracked(ctx, in.Scope, &s.own, func(ctx context.Context, p *progress) error {
		ctx, span := s.begin(ctx, p)
		err := s.run(ctx, p)
		if err == nil {
			err = s.record(ctx)
		}
		if err != nil {
			span.End(failureKind(ctx, classify(err)))
			return err
		}
		span.End("")
		return nil
	})
	return s.out, err
}

// begin begins the span of the activity, which those of its stages and of its flow are below. Lines of the log that
// belong to none of these are about the rollout.
func (s *shardRun) begin(ctx context.Context, p *progress) (context.Context, *trace.Span) {
	ctx = s.deps.tracer.Step(ctx, s.in.Run, s.in.Step, s.in.Gen)
	ctx, span := trace.Start(ctx, "episodes", whereabouts(s.in.Scope, &s.own)...)
	ctx = logs.With(ctx, append(trace.IDs(ctx), slog.String("stage", api.StageRollout))...)
	return within(ctx, p), span
}

// shardRun is one execution of RunEpisodes.
type shardRun struct {
	parts
	deps *Deps
	in   api.EpisodesInput
	out  api.Episodes
	own  api.Timing // of the activity
	last schema.Ref // the manifest committed last, of a turn or of its tool calls
	// edited names files of the user's environment that were edited since the run was prepared.
	edited string
}

func (s *shardRun) run(ctx context.Context, p *progress) (err error) {
	recipe, err := s.deps.recipe(ctx, s.in.Scope)
	if err != nil {
		return err
	}
	if err := s.deps.runsCalls(recipe); err != nil {
		return err
	}
	v, err := s.verifier(ctx, recipe)
	if err != nil {
		return err
	}
	defer v.close()
	ctx = context.WithValue(ctx, verifierKey{}, v)
	f, err := s.ahead(ctx, recipe, p)
	if err != nil {
		return err
	}
	if f != nil {
		ended := ctx
		defer func() { f.close(ended, err == nil) }()
		ctx = context.WithValue(ctx, aheadKey{}, f.Flow)
	} else {
		var stop func()
		ctx, stop = p.byTurns(ctx)
		defer stop()
	}
	for turn := range s.in.MaxTurns {
		more, err := s.turn(ctx, turn)
		if err != nil {
			return err
		}
		if !more {
			break
		}
		if f != nil {
			f.segments.committed(turn+1, turn+1)
		}
	}
	s.out.Tokens = s.sampledBy(f)
	return s.score(ctx)
}

// sampledBy counts the tokens that this attempt has sampled, in a flow or turn by turn.
func (s *shardRun) sampledBy(f *flow) (tokens int64) {
	if f != nil {
		return f.State().Tokens
	}
	for _, t := range s.timings {
		if t.Stage == api.StageRollout && !t.Adopted {
			tokens += t.Tokens
		}
	}
	return tokens
}

// turn generates one turn and runs its calls. It reports whether another turn may follow.
func (s *shardRun) turn(ctx context.Context, turn int) (more bool, err error) {
	generated, err := inner(ctx, &s.parts, part{api.StageRollout, api.GenerateRollouts, turn},
		GenerateRollouts{s.deps}.Execute, api.GenerateInput{Scope: s.in.Scope, Past: api.Past{Last: s.last},
			Shard: s.in.Shard, Turn: turn, Prompts: s.in.Prompts, Policy: s.in.Policy}, (*api.Generated).Its)
	if err != nil {
		return false, err
	}
	s.last = generated.Manifest
	if generated.Calls == 0 { // after a summary, the next turn follows at once
		return generated.Open > 0, nil
	}
	done, err := inner(ctx, &s.parts, part{api.StageSandbox, api.ExecuteToolCalls, turn},
		ExecuteToolCalls{s.deps}.Execute, api.ToolsInput{Scope: s.in.Scope, Past: api.Past{Last: s.last},
			Shard: s.in.Shard, Turn: turn, Prompts: s.in.Prompts}, (*api.ToolsDone).Its)
	s.last, s.edited = done.Manifest, cmp.Or(done.Edited, s.edited)
	return true, err
}

// score assembles the episodes, gets the verdicts on them that the recipe asks for, and scores them.
func (s *shardRun) score(ctx context.Context) error {
	assembled, err := inner(ctx, &s.parts, part{api.StageAssemble, api.AssembleTrajectories, -1},
		AssembleTrajectories{s.deps}.Execute, api.AssembleInput{Scope: s.in.Scope, Past: api.Past{Last: s.last},
			Shard: s.in.Shard, Prompts: s.in.Prompts}, (*api.Done).Its)
	if err != nil {
		return err
	}
	s.out.Assembled = assembled.Manifest
	var graded api.Graded
	if s.in.Grade {
		if graded, err = inner(ctx, &s.parts, part{api.StageGrade, api.GradeAnswers, -1}, GradeAnswers{s.deps}.Execute,
			api.GradeInput{Scope: s.in.Scope, Shard: s.in.Shard, Trajectories: assembled.Manifest},
			(*api.Graded).Its); err != nil {
			return err
		}
	}
	var judged api.Judged
	if s.in.Judge {
		if judged, err = inner(ctx, &s.parts, part{api.StageJudge, api.JudgeAnswers, -1}, JudgeAnswers{s.deps}.Execute,
			api.JudgeInput{Scope: s.in.Scope, Shard: s.in.Shard, Trajectories: assembled.Manifest,
				Prompts: s.in.Prompts}, (*api.Judged).Its); err != nil {
			return err
		}
	}
	var called api.Called
	if s.in.Function {
		if called, err = inner(
			ctx,
			&s.parts,
			part{api.StageFunction, api.CallFunction, -1},
			CallFunction{s.deps}.Execute,
			api.FunctionInput{Scope: s.in.Scope, Shard: s.in.Shard, Trajectories: assembled.Manifest,
				Prompts: s.in.Prompts},
			(*api.Called).Its,
		); err != nil {
			return err
		}
	}
	s.out.Scored, err = inner(ctx, &s.parts, part{api.StageReward, api.ScoreRewards, -1}, ScoreRewards{s.deps}.Execute,
		api.ScoreInput{Scope: s.in.Scope, Shard: s.in.Shard, Trajectories: assembled.Manifest,
			Gradings: graded.Manifest, Judgements: judged.Manifest, Results: called.Manifest}, (*api.Scored).Its)
	s.out.Scored.Edited = cmp.Or(s.out.Scored.Edited, s.edited)
	return err
}

// record records the measured times of the shard's stages, if the step does not.
func (s *shardRun) record(ctx context.Context) error {
	s.out.Timings = s.timings
	first := &s.out.Timings[0] // it also has what the shard read before its stages
	first.Start, first.Queue = min(first.Start, s.own.Start), s.own.Queue
	if !s.in.Record {
		return nil
	}
	_, err := RecordTimings{s.deps}.Execute(ctx, api.RecordTimingsInput{Scope: s.in.Scope, Timings: s.out.Timings,
		Part: "step", Shard: &s.in.Shard})
	s.out.Busy, s.out.Timings = api.BusyIn(s.out.Timings), nil
	return part{api.StageTimings, api.RecordTimings, -1}.at(err)
}

// runsCalls refuses a recipe whose tool calls this worker cannot run itself.
func (e *execution) runsCalls(r *recipes.Recipe) error {
	if r.Environment.CallsTools() && e.Sandbox == nil {
		return refuse(api.FailBadInput, "rollout.mode: interleaved runs tool calls on the workers of queue rollout, "+
			"and this one has no sandbox; give it one, or set rollout.mode=staged")
	}
	return nil
}
