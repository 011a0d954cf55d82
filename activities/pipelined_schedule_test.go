package activities_test

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/rl/schedule"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store/mem"
	"github.com/ropewalk/ropewalk/workflows"
)

// weighed reports whether a reward is ±1 with a tool term of this weight, for calls in some of its turns, with or
// without the bonus of the format.
func weighed(row schema.RewardRow, mu float64) bool {
	for calls := range row.Turns + 1 {
		for _, format := range []float64{0, 0.1} {
			if math.Abs(2*row.Outcome-1+mu*min(1, 0.1*float64(calls))+format-row.Reward) < 1e-9 {
				return true
			}
		}
	}
	return false
}

// A pipelined run with SPEAR's schedules and its replay buffer. Each step's rewards have the weight μ of the step that
// learns from them, and its update has the weight γ of that step, although it was sampled while an earlier one was
// updated. What the buffer holds may be older than the lag, and a run that is interrupted goes on with it.
func TestAPipelinedRunWithSchedulesAndAReplayBuffer(t *testing.T) {
	const horizon, steps = 8, 4
	set := slices.Concat(pipelined, imitating, []string{"pipeline.max_staleness=1", "reward={name: spear}",
		"schedule={gamma_horizon: 8, mu_horizon: 8}", "checkpoint.keep_last=9"})
	objects := mem.New()
	result := trainTiny(t, newBench(t, objects), "r", set...)
	made := policies(t, objects, "r", steps)
	told, older := 0, 0
	for step := 1; step <= steps; step++ {
		for _, row := range stepRows[schema.TurnRow](t, objects, "r", step, schema.StageRollout) {
			require.Equal(t, made[max(step-2, 0)], row.PolicyVersion, "step %d", step)
		}
		for _, row := range stepRows[schema.RewardRow](t, objects, "r", step, schema.StageReward) {
			require.True(t, weighed(row, schedule.Mu{Horizon: horizon}.At(step)), "step %d: %+v", step, row)
			if !weighed(row, schedule.Mu{Horizon: horizon}.At(step-1)) {
				told++
			}
		}
		update := manifestAt(t, objects, schema.At("r", step, schema.StageUpdate))
		require.InDelta(t, schedule.Gamma{Horizon: horizon}.At(step), update.Stats["gamma"], 1e-12, "step %d", step)

		buffer, _ := bufferManifest(t, objects, "r", step)
		for _, shard := range buffer.ShardsOf(schema.ReplayBatch) {
			data, err := objects.Get(t.Context(), shard.Key)
			require.NoError(t, err)
			rows, err := schema.DecodeReplayBatch(data)
			require.NoError(t, err)
			for _, row := range rows {
				collected, _, err := schema.ParseGroupID(row.GroupID)
				require.NoError(t, err)
				require.Less(t, collected, step)
				if lag := step - 1 - max(collected-2, 0); lag > 1 {
					older++
				}
			}
		}
	}
	require.Positive(t, told, "rewards tell a step's weight from that of the step before")
	require.Positive(t, older, "rows are replayed that are older than the lag allows")

	other := rewound(t, objects, 2, true)
	out, err := newBench(t, other).train(t, workflows.TrainRunInput{Run: "r", Resume: true})
	require.NoError(t, err)
	require.Equal(t, result.Policy.Digest, out.Policy.Digest)
	for step := 1; step <= steps; step++ {
		_, was := bufferManifest(t, objects, "r", step)
		_, is := bufferManifest(t, other, "r", step)
		require.Equal(t, was, is)
	}
	requireSound(t, objects, "r")
}
