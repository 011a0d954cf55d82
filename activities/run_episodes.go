package activities

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"github.com/ropewalk/ropewalk/activities/api"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/schema/stages"
)

// RunEpisodes takes one shard from its prompts to its rewards in one activity, for recipes with rollout.mode
// interleaved. It commits every turn, every turn's tool calls, the trajectories, the gradings and the rewards at the
// places where the activities of mode staged commit them, with the same rows. So an attempt continues where an earlier
// one was lost, and nothing that reads a record knows the mode.
type RunEpisodes struct{ *Deps }

// Execute runs what the shard has not committed yet.
func (a RunEpisodes) Execute(ctx context.Context, in api.EpisodesInput) (api.Episodes, error) {
	s := &shardRun{deps: a.Deps, in: in}
	err := tracked(ctx, &s.own, func(ctx context.Context, p *progress) error {
		ctx = within(ctx, p)
		if err := s.run(ctx); err != nil {
			return err
		}
		return s.record(ctx)
	})
	return s.out, err
}

// shardRun is one execution of RunEpisodes.
type shardRun struct {
	deps *Deps
	in   api.EpisodesInput
	out  api.Episodes
	own  api.Timing // of the activity
	last schema.Ref // the manifest committed last, of a turn or of its tool calls
}

func (s *shardRun) run(ctx context.Context) error {
	recipe, err := s.deps.recipe(ctx, s.in.Scope)
	if err != nil {
		return err
	}
	if err := s.deps.runsCalls(recipe); err != nil {
		return err
	}
	for turn := range s.in.MaxTurns {
		calls, err := s.turn(ctx, turn)
		if err != nil {
			return err
		}
		if calls == 0 {
			break
		}
	}
	return s.score(ctx)
}

// turn generates one turn and runs its calls. It returns the number of calls.
func (s *shardRun) turn(ctx context.Context, turn int) (calls int, err error) {
	generated, err := inner(ctx, s, part{api.StageRollout, api.GenerateRollouts, turn},
		GenerateRollouts{s.deps}.Execute, api.GenerateInput{Scope: s.in.Scope, Past: api.Past{Last: s.last},
			Shard: s.in.Shard, Turn: turn, Prompts: s.in.Prompts, Policy: s.in.Policy}, (*api.Generated).Its)
	if err != nil {
		return 0, err
	}
	s.last = generated.Manifest
	if generated.Calls == 0 {
		return 0, nil
	}
	done, err := inner(ctx, s, part{api.StageSandbox, api.ExecuteToolCalls, turn}, ExecuteToolCalls{s.deps}.Execute,
		api.ToolsInput{Scope: s.in.Scope, Past: api.Past{Last: s.last}, Shard: s.in.Shard, Turn: turn,
			Prompts: s.in.Prompts}, (*api.ToolsDone).Its)
	s.last = done.Manifest
	return generated.Calls, err
}

// score assembles the episodes, grades them if the recipe asks for it, and scores them.
func (s *shardRun) score(ctx context.Context) error {
	assembled, err := inner(ctx, s, part{api.StageAssemble, api.AssembleTrajectories, -1},
		AssembleTrajectories{s.deps}.Execute, api.AssembleInput{Scope: s.in.Scope, Past: api.Past{Last: s.last},
			Shard: s.in.Shard, Prompts: s.in.Prompts}, (*api.Done).Its)
	if err != nil {
		return err
	}
	s.out.Assembled = assembled.Manifest
	var graded api.Graded
	if s.in.Grade {
		if graded, err = inner(ctx, s, part{api.StageGrade, api.GradeAnswers, -1}, GradeAnswers{s.deps}.Execute,
			api.GradeInput{Scope: s.in.Scope, Shard: s.in.Shard, Trajectories: assembled.Manifest},
			(*api.Graded).Its); err != nil {
			return err
		}
	}
	s.out.Scored, err = inner(ctx, s, part{api.StageReward, api.ScoreRewards, -1}, ScoreRewards{s.deps}.Execute,
		api.ScoreInput{Scope: s.in.Scope, Shard: s.in.Shard, Trajectories: assembled.Manifest,
			Gradings: graded.Manifest}, (*api.Scored).Its)
	return err
}

// record records the measured times of the shard's stages, if the step does not.
func (s *shardRun) record(ctx context.Context) error {
	s.out.Timings[0].Queue = s.own.Queue
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

// part is a stage of the shard that an execution runs within itself.
type part struct {
	stage, activity string
	turn            int // −1 where the stage has none
}

// inner runs the activity of a part within the limit of the part's own activity, and keeps its measured time.
func inner[In, Out any](ctx context.Context, s *shardRun, p part, execute func(context.Context, In) (Out, error), in In,
	its func(*Out) *api.Done) (Out, error) {
	type ended struct {
		out Out
		err error
	}
	limit := s.limit(p.activity)
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	done := make(chan ended, 1)
	go func() {
		out, err := execute(ctx, in)
		done <- ended{out, err}
	}()
	select {
	case e := <-done:
		if e.err == nil {
			s.out.Timings = append(s.out.Timings, its(&e.out).Timing)
		}
		return e.out, p.at(e.err)
	case <-ctx.Done():
		var none Out
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return none, p.at(temporal.NewApplicationError(fmt.Sprintf("no result in %v", limit), api.FailTimeout))
		}
		return none, ctx.Err()
	}
}

// limit is how long one execution of an activity may take.
func (s *shardRun) limit(name string) time.Duration {
	if seconds := s.in.Timeouts[name]; seconds > 0 {
		return time.Duration(seconds * float64(time.Second))
	}
	return limits[name]
}

// limits are the declared time limits of activities.
var limits = func() map[string]time.Duration {
	out := map[string]time.Duration{}
	for _, a := range stages.Activities() {
		out[a.Name] = a.Limit
	}
	return out
}()

// at says in an error's details which part failed.
func (p part) at(err error) error {
	if err == nil {
		return nil
	}
	options := temporal.ApplicationErrorOptions{Cause: err,
		Details: []any{api.FailedPart{Stage: p.stage, Turn: p.turn, Activity: p.activity}}}
	text := err.Error()
	var said *temporal.ApplicationError
	if errors.As(err, &said) {
		options.NonRetryable, text = said.NonRetryable(), said.Message()
		return temporal.NewApplicationErrorWithOptions(text, said.Type(), options)
	}
	return temporal.NewApplicationErrorWithOptions(text, "", options)
}

// withinKey is the context key of the progress of the activity that a stage runs within.
type withinKey struct{}

// within marks the stages that run under ctx as parts of one activity. They count on its progress, and send no
// heartbeats of their own.
func within(ctx context.Context, p *progress) context.Context {
	return context.WithValue(ctx, withinKey{}, p)
}

// enclosing returns the progress of the activity that a stage runs within; nil where the stage is an activity.
func enclosing(ctx context.Context) *progress {
	p, _ := ctx.Value(withinKey{}).(*progress)
	return p
}

// attemptOf returns the attempt of the activity that runs under ctx.
func attemptOf(ctx context.Context) int { return int(activity.GetInfo(ctx).Attempt) }
