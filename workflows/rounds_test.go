package workflows

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/schema"
)

// sampledRounds fakes a run that samples in rounds of two shards.
type sampledRounds struct {
	*fakes
	prompts   []string // one for each call
	committed map[int][]schema.Ref
	resampled []api.StageInput
	published []api.PublishInput
}

// newRounds makes fakes whose shards have the given number of informative groups, by shard number.
func newRounds(t *testing.T, steps int, dynamic api.Dynamic, informative func(step, shard int) int) *sampledRounds {
	t.Helper()
	plan := api.Plan{Recipe: "r", Steps: steps, Shards: 2, MaxTurns: 1, Dynamic: &dynamic}
	f := &sampledRounds{fakes: newFakes(t, plan), committed: map[int][]schema.Ref{}}
	handle(f.fakes, api.SelectPrompts, func(in api.PromptsInput) (api.Done, error) {
		f.mu.Lock()
		defer f.mu.Unlock()
		require.NotNil(t, in.Round)
		f.prompts = append(f.prompts, fmt.Sprintf("step %d gen %d round %d", in.Step, in.Gen, *in.Round))
		return api.Done{Manifest: ref("prompts", in.Step, *in.Round)}, nil
	})
	handle(f.fakes, api.GenerateRollouts, func(in api.GenerateInput) (api.Generated, error) {
		if want := ref("prompts", in.Step, in.Shard/2); in.Prompts != want {
			return api.Generated{}, fmt.Errorf("shard %d got %s", in.Shard, in.Prompts.Key)
		}
		return f.generate(in)
	})
	handle(f.fakes, api.ScoreRewards, func(in api.ScoreInput) (api.Scored, error) {
		out, err := f.score(in)
		out.Informative = informative(in.Step, in.Shard)
		return out, err
	})
	handle(f.fakes, api.CommitStages, func(in api.CommitInput) (api.Committed, error) {
		for _, s := range in.Stages {
			if s.Stage == schema.StagePrompts {
				f.committed[in.Step] = s.Parts
			}
		}
		return committed(in, f.plan,
			func(stage string, _ int) schema.Ref { return ref(stage+" of the step", in.Step) }), nil
	})
	handle(f.fakes, api.Resample, func(in api.StageInput) (api.Resampled, error) {
		f.resampled = append(f.resampled, in)
		return f.resample(in)
	})
	handle(f.fakes, api.PublishPolicy, func(in api.PublishInput) (api.Published, error) {
		f.published = append(f.published, in)
		return api.Published{}, nil
	})
	return f
}

func (f *sampledRounds) train(t *testing.T) Progress {
	t.Helper()
	f.env.ExecuteWorkflow(TrainRun, TrainRunInput{Run: "run-1", Recipe: "quickstart"})
	require.NoError(t, f.env.GetWorkflowError())
	return progressOf(t, f.fakes)
}

func TestRoundsStopWhenEnoughIsInformative(t *testing.T) {
	f := newRounds(t, 1, api.Dynamic{Target: 4, Tries: 5}, func(int, int) int { return 1 })
	p := f.train(t)
	require.Equal(t, []string{"step 1 gen 0 round 0", "step 1 gen 0 round 1"}, f.prompts)
	require.Equal(t, []schema.Ref{ref("prompts", 1, 0), ref("prompts", 1, 1)}, f.committed[1])
	require.Equal(t, 2*2, f.calls[api.ScoreRewards])
	stages := f.published[0].Stages
	require.Equal(t, api.StageRef{Stage: schema.StagePrompts, Ref: ref("prompts of the step", 1)}, stages[0])
	require.Equal(t, 1, count(stages, schema.StagePrompts), "the head names one manifest of the prompts")
	require.Equal(t, 2, p.Lines[0].Rounds)
	require.Equal(t, 16, p.Lines[0].Trajectories, "of both rounds")
	require.Contains(t, p.Markdown(), "| grad | rounds |\n")
	require.Regexp(t, `\| 1 \|.* 2 \|\n`, p.Markdown())
}

func count(stages []api.StageRef, stage string) int {
	return len(stages) - len(slices.DeleteFunc(slices.Clone(stages),
		func(s api.StageRef) bool { return s.Stage == stage }))
}

func TestRoundsEndWithTheLastTry(t *testing.T) {
	f := newRounds(t, 1, api.Dynamic{Target: 4, Tries: 3}, func(_, shard int) int { return shard / 5 })
	require.Equal(t, 3, f.train(t).Lines[0].Rounds)
	require.Len(t, f.prompts, 3)
	require.Equal(t, 3*2, f.calls[api.ScoreRewards])
}

func TestRoundsOfAColdStart(t *testing.T) {
	f := newRounds(t, 3, api.Dynamic{Target: 4, Tries: 2, ColdStart: 2}, func(int, int) int { return 0 })
	f.train(t)
	require.Equal(t, []string{"step 1 gen 0 round 0", "step 2 gen 0 round 0", "step 3 gen 0 round 0",
		"step 3 gen 0 round 1"}, f.prompts)
}

func TestAStepThatFailsInALaterRoundGoesThroughTheSameRounds(t *testing.T) {
	f := newRounds(t, 1, api.Dynamic{Target: 4, Tries: 5}, func(int, int) int { return 1 })
	broken(f.fakes, api.AssembleTrajectories, 1, func(in api.AssembleInput) bool { return in.Shard == 3 },
		func(in api.AssembleInput) (api.Done, error) {
			return api.Done{Manifest: ref("assembled", in.Step, in.Shard)}, nil
		})
	f.after(time.Hour, UpdateRetry, RetryInput{})
	require.Equal(t, 2, f.train(t).Lines[0].Rounds)
	require.Equal(t, []string{"step 1 gen 0 round 0", "step 1 gen 0 round 1", "step 1 gen 0 round 0",
		"step 1 gen 0 round 1"}, f.prompts)
}

func TestAStepTakenAnewSamplesItsRoundsAnew(t *testing.T) {
	f := newRounds(t, 1, api.Dynamic{Target: 4, Tries: 5}, func(int, int) int { return 1 })
	broken(f.fakes, api.AssembleTrajectories, 1, func(in api.AssembleInput) bool { return in.Shard == 3 },
		func(in api.AssembleInput) (api.Done, error) {
			return api.Done{Manifest: ref("assembled", in.Step, in.Shard)}, nil
		})
	f.amends(func(api.AmendInput) api.Plan { return f.plan })
	temperature := 0.5
	f.after(time.Hour, UpdateRetry, RetryInput{Temperature: &temperature})
	f.train(t)
	require.Equal(t, []string{"step 1 gen 1 round 0", "step 1 gen 1 round 1"}, f.prompts[2:])
}

func TestSkipGoesOnWithoutAShardOfALaterRound(t *testing.T) {
	f := newRounds(t, 1, api.Dynamic{Target: 4, Tries: 3}, func(int, int) int { return 1 })
	broken(f.fakes, api.AssembleTrajectories, 1, func(in api.AssembleInput) bool { return in.Shard == 3 },
		func(in api.AssembleInput) (api.Done, error) {
			return api.Done{Manifest: ref("assembled", in.Step, in.Shard)}, nil
		})
	skip := f.after(time.Hour, UpdateSkip)
	p := f.train(t)
	require.NoError(t, skip.rejected)
	require.Contains(t, skip.value.(Decided).What, "without 1 of the round's 2 shards")
	require.Equal(t, 3, p.Lines[0].Rounds, "the shard's groups are missed, so that another round is sampled")
	require.Equal(t, 3, f.resampled[0].Excluded[0].Shard)
	require.Equal(t, ref("prompts of the step", 1), f.resampled[0].Made.One(schema.StagePrompts))
}

func TestSkipIsRefusedWhereNothingOfARoundWouldBeLeft(t *testing.T) {
	f := newRounds(t, 1, api.Dynamic{Target: 4, Tries: 3}, func(int, int) int { return 1 })
	broken(f.fakes, api.AssembleTrajectories, 2, func(in api.AssembleInput) bool { return in.Shard >= 2 },
		func(in api.AssembleInput) (api.Done, error) {
			return api.Done{Manifest: ref("assembled", in.Step, in.Shard)}, nil
		})
	skip := f.after(time.Hour, UpdateSkip)
	f.after(2*time.Hour, UpdateRetry, RetryInput{})
	f.train(t)
	require.ErrorContains(t, skip.rejected, "no shard of the round would be left")
}
