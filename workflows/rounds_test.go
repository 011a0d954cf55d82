package workflows

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/activities/wire"
	"github.com/ropewalk/ropewalk/schema"
)

// sampledRounds are the fakes of a run that samples in rounds of two shards.
type sampledRounds struct {
	*fakes
	prompts   []string // one a call
	committed map[int][]schema.Ref
	resampled []wire.ResampleInput
	published []wire.PublishInput
}

// newRounds makes fakes whose shards each have so many informative groups, by their number.
func newRounds(t *testing.T, steps int, dynamic wire.Dynamic, informative func(step, shard int) int) *sampledRounds {
	t.Helper()
	plan := wire.Plan{Recipe: "r", Steps: steps, Shards: 2, MaxTurns: 1, Dynamic: &dynamic}
	f := &sampledRounds{fakes: newFakes(t, plan), committed: map[int][]schema.Ref{}}
	handle(f.fakes, wire.SelectPrompts, func(in wire.PromptsInput) (wire.Done, error) {
		f.mu.Lock()
		defer f.mu.Unlock()
		require.NotNil(t, in.Round)
		f.prompts = append(f.prompts, fmt.Sprintf("step %d gen %d round %d", in.Step, in.Gen, *in.Round))
		return wire.Done{Manifest: ref("prompts", in.Step, *in.Round)}, nil
	})
	handle(f.fakes, wire.GenerateRollouts, func(in wire.GenerateInput) (wire.Generated, error) {
		if want := ref("prompts", in.Step, in.Shard/2); in.Prompts != want {
			return wire.Generated{}, fmt.Errorf("shard %d got %s", in.Shard, in.Prompts.Key)
		}
		return f.generate(in)
	})
	handle(f.fakes, wire.ScoreRewards, func(in wire.ScoreInput) (wire.Scored, error) {
		out, err := f.score(in)
		out.Informative = informative(in.Step, in.Shard)
		return out, err
	})
	handle(f.fakes, wire.CommitStages, func(in wire.CommitInput) (wire.Committed, error) {
		out := wire.Committed{}
		for _, s := range in.Stages {
			out.Refs = append(out.Refs, ref(s.Stage+" of the step", in.Step))
			if s.Stage == wire.StagePrompts {
				f.committed[in.Step] = s.Parts
			}
		}
		return out, nil
	})
	handle(f.fakes, wire.Resample, func(in wire.ResampleInput) (wire.Resampled, error) {
		f.resampled = append(f.resampled, in)
		return f.resample(in)
	})
	handle(f.fakes, wire.PublishPolicy, func(in wire.PublishInput) (wire.Published, error) {
		f.published = append(f.published, in)
		return wire.Published{}, nil
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
	f := newRounds(t, 1, wire.Dynamic{Target: 4, Tries: 5}, func(int, int) int { return 1 })
	p := f.train(t)
	require.Equal(t, []string{"step 1 gen 0 round 0", "step 1 gen 0 round 1"}, f.prompts)
	require.Equal(t, []schema.Ref{ref("prompts", 1, 0), ref("prompts", 1, 1)}, f.committed[1])
	require.Equal(t, 2*2, f.calls[wire.ScoreRewards])
	require.Equal(t, ref("prompts of the step", 1), f.resampled[0].Prompts)
	stages := f.published[0].Stages
	require.Equal(t, wire.StageRef{Stage: wire.StagePrompts, Ref: ref("prompts of the step", 1)}, stages[0])
	require.Equal(t, 1, count(stages, wire.StagePrompts), "the head names one manifest of the prompts")
	require.Equal(t, 2, p.Lines[0].Rounds)
	require.Equal(t, 16, p.Lines[0].Trajectories, "of both rounds")
	require.Contains(t, p.Markdown(), "| seconds | rounds |\n")
	require.Regexp(t, `\| 1 \|.* 2 \|\n`, p.Markdown())
}

func count(stages []wire.StageRef, stage string) int {
	return len(stages) - len(slices.DeleteFunc(slices.Clone(stages), func(s wire.StageRef) bool { return s.Stage == stage }))
}

func TestRoundsEndWithTheLastTry(t *testing.T) {
	f := newRounds(t, 1, wire.Dynamic{Target: 4, Tries: 3}, func(_, shard int) int { return shard / 5 })
	require.Equal(t, 3, f.train(t).Lines[0].Rounds)
	require.Len(t, f.prompts, 3)
	require.Equal(t, 3*2, f.calls[wire.ScoreRewards])
}

func TestRoundsOfAColdStart(t *testing.T) {
	f := newRounds(t, 3, wire.Dynamic{Target: 4, Tries: 2, ColdStart: 2}, func(int, int) int { return 0 })
	f.train(t)
	require.Equal(t, []string{"step 1 gen 0 round 0", "step 2 gen 0 round 0", "step 3 gen 0 round 0", "step 3 gen 0 round 1"}, f.prompts)
}

func TestAStepThatFailsInALaterRoundGoesThroughTheSameRounds(t *testing.T) {
	f := newRounds(t, 1, wire.Dynamic{Target: 4, Tries: 5}, func(int, int) int { return 1 })
	broken(f.fakes, wire.AssembleTrajectories, 1, func(in wire.AssembleInput) bool { return in.Shard == 3 }, func(in wire.AssembleInput) (wire.Done, error) {
		return wire.Done{Manifest: ref("assembled", in.Step, in.Shard)}, nil
	})
	f.after(time.Hour, UpdateRetry, RetryInput{})
	require.Equal(t, 2, f.train(t).Lines[0].Rounds)
	require.Equal(t, []string{"step 1 gen 0 round 0", "step 1 gen 0 round 1", "step 1 gen 0 round 0", "step 1 gen 0 round 1"}, f.prompts)
}

func TestAStepTakenAnewSamplesItsRoundsAnew(t *testing.T) {
	f := newRounds(t, 1, wire.Dynamic{Target: 4, Tries: 5}, func(int, int) int { return 1 })
	broken(f.fakes, wire.AssembleTrajectories, 1, func(in wire.AssembleInput) bool { return in.Shard == 3 }, func(in wire.AssembleInput) (wire.Done, error) {
		return wire.Done{Manifest: ref("assembled", in.Step, in.Shard)}, nil
	})
	f.amends(func(wire.AmendInput) wire.Plan { return f.plan })
	temperature := 0.5
	f.after(time.Hour, UpdateRetry, RetryInput{Temperature: &temperature})
	f.train(t)
	require.Equal(t, []string{"step 1 gen 1 round 0", "step 1 gen 1 round 1"}, f.prompts[2:])
}

func TestSkipGoesOnWithoutAShardOfALaterRound(t *testing.T) {
	f := newRounds(t, 1, wire.Dynamic{Target: 4, Tries: 3}, func(int, int) int { return 1 })
	broken(f.fakes, wire.AssembleTrajectories, 1, func(in wire.AssembleInput) bool { return in.Shard == 3 }, func(in wire.AssembleInput) (wire.Done, error) {
		return wire.Done{Manifest: ref("assembled", in.Step, in.Shard)}, nil
	})
	skip := f.after(time.Hour, UpdateSkip)
	p := f.train(t)
	require.NoError(t, skip.rejected)
	require.Contains(t, skip.value.(Decided).What, "without 1 of the round's 2 shards")
	require.Equal(t, 3, p.Lines[0].Rounds, "the shard's groups are missed, so that another round is sampled")
	require.Equal(t, 3, f.resampled[0].Excluded[0].Shard)
}

func TestSkipIsRefusedWhereNothingOfARoundWouldBeLeft(t *testing.T) {
	f := newRounds(t, 1, wire.Dynamic{Target: 4, Tries: 3}, func(int, int) int { return 1 })
	broken(f.fakes, wire.AssembleTrajectories, 2, func(in wire.AssembleInput) bool { return in.Shard >= 2 }, func(in wire.AssembleInput) (wire.Done, error) {
		return wire.Done{Manifest: ref("assembled", in.Step, in.Shard)}, nil
	})
	skip := f.after(time.Hour, UpdateSkip)
	f.after(2*time.Hour, UpdateRetry, RetryInput{})
	f.train(t)
	require.ErrorContains(t, skip.rejected, "no shard of the round would be left")
}
