package activities_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/internal/commit"
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

// A replay calls the function again where its settings or its code have changed, or where the step had another reward,
// and says that it does not follow from the record. One that changes nothing reads what the step has committed.
func TestAReplayCallsTheFunctionThatChanged(t *testing.T) {
	b := scoredWalk(t, "interleaved", `{"scale": 0.5}`)
	again := func(run string, set ...string) ([]schema.RewardRow, workflows.ReplayStageResult) {
		t.Helper()
		out, err := runReplay(t, b.store, workflows.ReplayStageInput{Run: run, Step: 1, From: "reward",
			Through: "reward", Set: set})
		require.NoError(t, err)
		m, _, found, err := b.record.Lookup(t.Context(), schema.At(run, 1, schema.StageReward).WithGen(out.Gen))
		require.NoError(t, err)
		require.True(t, found)
		rows, err := commit.Rows[schema.RewardRow](t.Context(), b.record, m)
		require.NoError(t, err)
		require.Len(t, rows, 8)
		return rows, out
	}
	before := stepRows[schema.RewardRow](t, b.store, "r", 1, schema.StageReward)
	rows, out := again("r")
	require.Equal(t, before, rows)
	require.Len(t, out.Stages, 1)
	require.Empty(t, out.Impure)

	rows, out = again("r", `reward.kwargs='{"scale": 2}'`)
	for i, r := range rows {
		require.InDelta(t, 4*before[i].Reward, r.Reward, 1e-9)
	}
	require.Equal(t, []string{"function", "reward"}, []string{out.Stages[0].Stage, out.Stages[1].Stage})
	require.Equal(t, "the function gives other answers than it gave in the step", out.Impure)
	_, out = again("r", `reward.kwargs='{ "scale": 0.5 }'`)
	require.True(t, out.Stages[1].Same)
	require.Empty(t, out.Impure, "code and answers are the same as in the step")

	f, ok := b.rewardFile(t)
	require.True(t, ok)
	code, err := os.ReadFile(f)
	require.NoError(t, err)
	code = append(code, "\n\ndef score(trajectory, scale=1):\n    return 7 * scale\n"...)
	require.NoError(t, os.WriteFile(f, code, 0o600))
	rows, out = again("r")
	require.InDelta(t, 3.5, rows[0].Reward, 1e-9)
	require.Equal(t, "the function's code was edited since the run began: walking.py", out.Impure)
	noFaults(t, b)

	settings, _, _, path := pythonWalk(t)
	_, err = b.train(t, workflows.TrainRunInput{Run: "other", RecipeYAML: walkOf("python", settings, "interleaved",
		"{name: arlarena}"), Set: []string{"steps=1", "evaluation.problems=1", "evaluation.samples=1"}})
	require.NoError(t, err)
	_, out = again("other", fmt.Sprintf(`reward={name: python, module: "walking:score", path: %q, kwargs: '{}'}`, path))
	require.Equal(t, "the step has no answers of this function that could be compared", out.Impure)
}

// rewardFile is the file of the run's reward function.
func (b *bench) rewardFile(t *testing.T) (string, bool) {
	t.Helper()
	view, err := analysis.New(b.store).Visible(t.Context(), "r")
	require.NoError(t, err)
	var recipe struct{ Reward struct{ Path string } }
	require.NoError(t, view.Recipe(t.Context(), &recipe))
	return filepath.Join(recipe.Reward.Path, "walking.py"), recipe.Reward.Path != ""
}
