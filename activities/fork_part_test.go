package activities_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/testing/pipelinetest"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store/mem"
	"github.com/ropewalk/ropewalk/workflows"
)

// forkedFrom trains a run that forks off another one at a stage.
func (b *bench) forkedFrom(t *testing.T, run, from string, at schema.ForkPoint,
	set ...string) workflows.TrainRunResult {
	t.Helper()
	out, err := b.train(t, workflows.TrainRunInput{Run: run, Fork: &at, ForkFrom: from, Set: set})
	require.NoError(t, err)
	b.sound(t, run)
	return out
}

// With the same settings, a fork at a stage makes what the other run made, in both modes, and samples nothing of the
// step that it begins with.
func TestAForkAtAStageGoesOnAsTheOtherRunDid(t *testing.T) {
	for _, mode := range []string{"staged", "interleaved"} {
		t.Run(mode, func(t *testing.T) {
			b := newBench(t, mem.New())
			whole := trainTiny(t, b, "whole", "steps=3", "rollout.mode="+mode, "loss.old_log_probs=recompute",
				"checkpoint.keep_last=3")
			for _, from := range []string{schema.StageReward, schema.StageResample, schema.StageAdvantage} {
				fork := b.forkedFrom(t, "fork-"+from, from, schema.ForkPoint{Run: "whole", Step: 1})
				require.Equal(t, whole.Policy.Digest, fork.Policy.Digest, from)
				for _, step := range []string{"2", "3"} {
					require.Equal(t, dataOf(t, b, "whole", step), dataOf(t, b, "fork-"+from, step), from)
				}
				require.True(t, b.adopted(t, schema.At("fork-"+from, 2, "timings_step"), schema.StageRollout), from)
				require.False(t, b.adopted(t, schema.At("fork-"+from, 2, "timings_step"), schema.StageLogprobs), from)
				require.False(t, b.adopted(t, schema.At("fork-"+from, 3, "timings_step"), schema.StageRollout), from)
			}
			_, err := b.train(t, workflows.TrainRunInput{Run: "fork-" + schema.StageReward, Resume: true})
			require.NoError(t, err)
		})
	}
}

// adopted reports whether a run has taken a stage as it was, by the times that are recorded at a place.
func (b *bench) adopted(t *testing.T, times schema.Place, stage string) bool {
	t.Helper()
	m, _, found, err := b.record.Lookup(t.Context(), times)
	require.NoError(t, err)
	require.True(t, found)
	data, err := b.record.ReadShard(t.Context(), m.Shards[0])
	require.NoError(t, err)
	rows, err := schema.Decode[schema.TimingRow](data)
	require.NoError(t, err)
	rows = slices.DeleteFunc(rows, func(r schema.TimingRow) bool { return r.Stage != stage })
	require.NotEmpty(t, rows, stage)
	return !slices.ContainsFunc(rows, func(r schema.TimingRow) bool { return r.Adopted == nil })
}

// A fork at a stage learns from the same rollout under another method, also from a step at which the run has parked.
func TestAForkAtAStageOfAParkedRun(t *testing.T) {
	b := newBench(t, mem.New())
	trainTiny(t, b, "whole", "steps=1")
	worker := *b
	worker.deps = pipelinetest.Deps(t, b.store, pipelinetest.Wrap{Trainer: func(e policy.Engine) policy.Engine {
		return &divergent{Engine: e, left: 1}
	}})
	_, err := trainTinyError(t, &worker, "parked")
	require.ErrorContains(t, err, "gradient")
	b.forkedFrom(t, "fork", schema.StageReward, schema.ForkPoint{Run: "parked", Step: 1}, "steps=2",
		"resample.roc=null", "resample.vspo=null", "optimizer.lr=0.0001")
	of := func(run, table string) []string {
		return slices.DeleteFunc(dataOf(t, b, run, "2"), func(key string) bool {
			return !strings.Contains(key, "table="+table+"/")
		})
	}
	for _, table := range []string{"prompts", "turns", "tool_calls", "trajectories", "rewards"} {
		require.NotEmpty(t, of("fork", table), table)
		require.Equal(t, of("parked", table), of("fork", table), table)
	}
	require.NotEqual(t, of("parked", "batch"), of("fork", "batch"))
}

// A fork that would not have the rollout that its recipe describes is refused before it commits anything.
func TestForksAtAStageThatAreRefused(t *testing.T) {
	b := newBench(t, mem.New())
	trainTiny(t, b, "whole", "steps=2")
	for want, in := range map[string]workflows.TrainRunInput{
		"from: a run can be forked at reward, resample, advantage, got \"update\"": {ForkFrom: schema.StageUpdate},
		"--set rollout.temperature=0.5: what the fork shares of step 2": {ForkFrom: schema.StageReward,
			Set: []string{"rollout.temperature=0.5"}},
		"--set reward.fallback=true: what the fork shares of step 2": {ForkFrom: schema.StageResample,
			Set: []string{"reward.fallback=true"}},
		"--set seed=2: what the fork shares of step 2": {ForkFrom: schema.StageResample, Set: []string{"seed=2"}},
		"run whole has not committed assemble of step 3, which reward reads": {ForkFrom: schema.StageReward,
			Fork: &schema.ForkPoint{Run: "whole", Step: 2}, Set: []string{"steps=3"}},
	} {
		in.Run = "fork"
		if in.Fork == nil {
			in.Fork = &schema.ForkPoint{Run: "whole", Step: 1}
		}
		_, err := b.train(t, in)
		require.ErrorContains(t, err, want)
	}
	require.NotContains(t, strings.Join(keys(t, b.store), "\n"), schema.CatalogueKey("fork"))
	_, err := b.train(t, workflows.TrainRunInput{Run: "fork", Recipe: "quickstart", ForkFrom: schema.StageReward})
	require.ErrorContains(t, err, "fork_from: only a fork begins at a stage")
}
