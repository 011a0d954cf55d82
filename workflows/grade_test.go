package workflows

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/schema/stages"
)

// grades fakes the stage grade and lists its inputs, the inputs of the reward, and the stages that the heads name.
func (f *fakes) grades() (asked *[]api.VerdictInput, scored *[]api.ScoreInput, heads *[][]api.StageRef) {
	asked, scored, heads = &[]api.VerdictInput{}, &[]api.ScoreInput{}, f.heads()
	handle(f, api.GradeAnswers, func(in api.VerdictInput) (api.Verdicts, error) {
		f.mu.Lock()
		defer f.mu.Unlock()
		*asked = append(*asked, in)
		return f.grade(in)
	})
	handle(f, api.ScoreRewards, func(in api.ScoreInput) (api.Scored, error) {
		f.mu.Lock()
		defer f.mu.Unlock()
		*scored = append(*scored, in)
		return f.score(in)
	})
	return asked, scored, heads
}

func (f *fakes) grade(in api.VerdictInput) (api.Verdicts, error) {
	start := time.Date(2026, 1, 1, 0, 0, in.Shard, 0, time.UTC).UnixMicro()
	return api.Verdicts{Done: api.Done{
		Manifest: ref("gradings", in.Step, in.Shard), Timing: api.Timing{Stage: schema.StageGrade, Start: start,
			End: start + 500_000},
	}, Asked: 2}, nil
}

func TestAnswersAreGradedBetweenAssembleAndReward(t *testing.T) {
	f := newFakes(t, api.Plan{Recipe: "r", Steps: 1, Shards: 2, MaxTurns: 3, Needs: stages.Needs{Grade: true}})
	asked, scored, heads := f.grades()
	f.env.ExecuteWorkflow(TrainRun, TrainRunInput{Run: "run-1", Recipe: "quickstart"})
	require.NoError(t, f.env.GetWorkflowError())
	require.Len(t, *asked, 2)
	for _, in := range *asked {
		require.Equal(t, ref("assembled", 1, in.Shard), in.Trajectories)
	}
	require.Len(t, *scored, 2)
	for _, in := range *scored {
		require.Equal(t, ref("assembled", 1, in.Shard), in.Trajectories)
		require.Equal(t, []schema.Ref{ref("gradings", 1, in.Shard)}, in.Verdicts)
	}
	names := stageNames((*heads)[0])
	require.Equal(t, []string{schema.StageAssemble, schema.StageGrade, schema.StageReward, schema.StageResample},
		names[len(names)-6:len(names)-2])
	p := progressOf(t, f)
	require.Contains(t, p.Markdown(), "grade")
}

func TestNothingIsGradedWhereTheRecipeDoesNotAsk(t *testing.T) {
	f := newFakes(t, api.Plan{Recipe: "r", Steps: 1, Shards: 2, MaxTurns: 1})
	asked, scored, heads := f.grades()
	f.env.ExecuteWorkflow(TrainRun, TrainRunInput{Run: "run-1", Recipe: "quickstart"})
	require.NoError(t, f.env.GetWorkflowError())
	require.Empty(t, *asked)
	require.Len(t, *scored, 2)
	for _, in := range *scored {
		require.Empty(t, in.Verdicts)
	}
	require.NotContains(t, stageNames((*heads)[0]), schema.StageGrade)
}

// A shard whose answers cannot be graded parks the run, and a person may continue without the shard.
func TestAFailedGradingParksAndCanBeSkipped(t *testing.T) {
	f := newFakes(t, api.Plan{Recipe: "r", Steps: 1, Shards: 3, MaxTurns: 1, Needs: stages.Needs{Grade: true}})
	_, scored, _ := f.grades()
	broken(f, api.GradeAnswers, 1, func(in api.VerdictInput) bool { return in.Shard == 1 }, f.grade)
	var parked Progress
	f.env.RegisterDelayedCallback(func() { parked = progressOf(t, f) }, time.Minute)
	f.after(time.Hour, UpdateSkip)
	f.env.ExecuteWorkflow(TrainRun, TrainRunInput{Run: "run-1", Recipe: "quickstart"})
	require.NoError(t, f.env.GetWorkflowError())
	require.NotNil(t, parked.Parked)
	require.Equal(t, StageFailure{
		Stage: schema.StageGrade, Shard: 1, Turn: -1, Activity: api.GradeAnswers, Kind: "disk_full",
		Text: "GradeAnswers: no room on the device",
	}, parked.Parked.Failures[0])
	for _, in := range *scored {
		require.NotEqual(t, 1, in.Shard)
	}
	require.Equal(t, 1, f.calls[api.UpdatePolicy])
}

func TestReplayedRewardsReadTheStepsGradings(t *testing.T) {
	f := newReplayFakes(t, 0)
	handle(f.fakes, api.PrepareReplay, func(api.ReplayInput) (api.ReplayPrepared, error) {
		out := api.ReplayPrepared{Done: api.Done{Manifest: ref("claim")}, Gen: 3}
		for shard := range replayShards {
			out.Trajectories = append(out.Trajectories, api.ShardRef{Shard: shard, Ref: ref("assembled", shard)})
			out.Verdicts = append([]api.ShardRef{{Shard: shard, Ref: ref("gradings", shard)}}, out.Verdicts...)
		}
		return out, nil
	})
	f.run(t, ReplayStageInput{Run: "r", Step: 7, From: "reward", Through: "reward"})
	require.Len(t, f.scored, replayShards)
	for _, in := range f.scored {
		require.Equal(t, []schema.Ref{ref("gradings", in.Shard)}, in.Verdicts)
	}
	require.Zero(t, f.calls[api.GradeAnswers])
}
