package activities_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/python"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store/mem"
	"github.com/ropewalk/ropewalk/workflows"
)

// scoredWalk trains on the walk with a reward function.
func scoredWalk(t *testing.T, mode, kwargs string) *bench {
	t.Helper()
	settings, _, _, path := pythonWalk(t)
	b := walkBench(t, mem.New())
	_, err := b.train(t, workflows.TrainRunInput{Run: "r", RecipeYAML: walkOf("python", settings, mode,
		fmt.Sprintf(`{name: python, module: "walking:score", path: %q, kwargs: '%s'}`, path, kwargs)),
		Set: []string{"evaluation.problems=1", "evaluation.samples=1"}})
	require.NoError(t, err)
	return b
}

// A user's function scores trajectories in a stage of its own. Replays need no Python, and both modes commit the same.
func TestAFunctionScores(t *testing.T) {
	var before []schema.RewardRow
	for _, mode := range []string{"staged", "interleaved"} {
		t.Run(mode, func(t *testing.T) {
			b := scoredWalk(t, mode, `{"scale": 0.5}`)
			rows := stepRows[schema.FunctionScoreRow](t, b.store, "r", 1, schema.StageFunction)
			require.Len(t, rows, 8)
			rewards := stepRows[schema.RewardRow](t, b.store, "r", 1, schema.StageReward)
			require.Len(t, rewards, 8)
			for i, r := range rewards {
				require.Equal(t, "walking:score", rows[i].Function)
				require.Equal(t, *rows[i].Score, r.Reward)
				require.InDelta(t, 0.5*float64(r.Turns), r.Reward, 1e-9)
				require.Equal(t, r.Success, *rows[i].Success)
				require.Equal(t, map[bool]string{true: "solved", false: "unsolved"}[r.Success], r.Verdict)
			}
			noFaults(t, b)
			t.Setenv(python.Variable, "/bin/false")
			checked(t, b.store, "r")
			if before != nil {
				require.Equal(t, before, rewards)
			}
			before = rewards
		})
	}
}

// What a function does instead of returning a number excludes its trajectory, and is never a reward of 0.
func TestAFunctionThatBreaks(t *testing.T) {
	for fault, want := range map[string]string{
		"raise": "reward function: ValueError: no such trajectory",
		"nan":   "reward function: ValueError: the score is nan, want a finite number",
		"text":  "reward function: TypeError: the score is a str, want a number",
		"pair": "reward function: TypeError: the function must return a number, or a pair of a number and a truth " +
			"value",
	} {
		t.Run(fault, func(t *testing.T) {
			settings, _, _, path := pythonWalk(t)
			b := walkBench(t, mem.New())
			_, err := b.train(t, workflows.TrainRunInput{Run: "r", RecipeYAML: walkOf("python", settings,
				"interleaved", fmt.Sprintf(`{name: python, module: "walking:score", path: %q, kwargs: '{"fault": %q}'}`,
					path, fault)), Set: []string{"steps=1", "rollout.samples_per_prompt=8"}})
			require.NoError(t, err)
			excluded := 0
			for _, r := range stepRows[schema.FunctionScoreRow](t, b.store, "r", 1, schema.StageFunction) {
				if r.Excluded != nil {
					require.Equal(t, want, *r.Excluded)
					excluded++
				}
			}
			require.Positive(t, excluded)
			require.Len(t, stepRows[schema.RewardRow](t, b.store, "r", 1, schema.StageReward), 16-excluded)
		})
	}
}
