package prompts

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/schema"
)

func TestOutcomesOfSteps(t *testing.T) {
	prompt := []schema.PromptRow{{GroupID: "g", ProblemID: "p"}, {GroupID: "h", ProblemID: "q"}}
	reward := func(group string, success bool) schema.RewardRow {
		return schema.RewardRow{GroupID: group, TrajectoryID: group + "/000", Success: success}
	}
	all, err := Count(prompt, []schema.RewardRow{reward("g", true), reward("h", true), reward("h", false)})
	require.NoError(t, err)
	more, err := Count(prompt, []schema.RewardRow{reward("g", true)})
	require.NoError(t, err)
	for samples, want := range map[int]map[string]bool{1: {"p": true}, 2: {}} {
		solved, err := all.Solved(samples)
		require.NoError(t, err)
		require.Equal(t, want, solved)
	}
	all.Add(more)
	solved, err := all.Solved(2)
	require.NoError(t, err)
	require.Equal(t, map[string]bool{"p": true}, solved)

	_, err = Count(prompt, []schema.RewardRow{reward("x", true)})
	require.EqualError(t, err, "trajectory x/000 has a reward, and its group has no prompt")
}
