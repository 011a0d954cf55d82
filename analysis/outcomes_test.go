package analysis_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/internal/testing/recordtest"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store/mem"
)

// The outcomes of a step agree with its episodes, and tell of skipped shards too.
func TestOutcomes(t *testing.T) {
	objects := mem.New()
	recordtest.Train(t, objects, recordtest.Options{Run: "r", Steps: 2, Seed: 1, Skipped: 2})
	v, err := analysis.New(objects).Visible(t.Context(), "r")
	require.NoError(t, err)
	outcomes, err := v.Outcomes(t.Context(), 1, false)
	require.NoError(t, err)
	episodes, err := v.Episodes(t.Context(), 1)
	require.NoError(t, err)
	require.Len(t, outcomes, recordtest.Groups*recordtest.Samples)
	require.Len(t, outcomes, len(episodes))
	for i, o := range outcomes {
		e := episodes[i]
		require.Equal(t, e.Trajectory.TrajectoryID, o.Trajectory.TrajectoryID)
		require.Equal(t, e.Trajectory.Text, o.Trajectory.Text)
		require.Equal(t, e.Trajectory.ResponseTokens, o.Trajectory.ResponseTokens)
		require.Equal(t, e.Trajectory.FinalAnswer, o.Trajectory.FinalAnswer)
		require.Empty(t, o.Trajectory.PolicyVersion, "not read")
		require.Equal(t, e.Reward.Reward, o.Reward.Reward)
		require.Equal(t, e.Reward.Verdict, o.Reward.Verdict)
		require.Equal(t, e.Selection, o.Selection)
		require.Equal(t, e.Prompt.Problem, o.Prompt.Problem)
		require.Len(t, o.Calls, len(e.Calls))
		for j, c := range e.Calls {
			require.Equal(t, c.Status, o.Calls[j].Status)
			require.Empty(t, o.Calls[j].Code, "not read")
		}
	}

	outcomes, err = v.Outcomes(t.Context(), 2, false)
	require.NoError(t, err)
	require.Len(t, outcomes, recordtest.Groups*recordtest.Samples, "with those of the skipped shard")
	last := outcomes[len(outcomes)-1]
	require.Equal(t, schema.TrajectoryID(2, recordtest.Groups-1, recordtest.Samples-1), last.Selection.TrajectoryID)
	require.Zero(t, last.Trajectory)
	require.Nil(t, last.Reward)
	require.NotNil(t, last.Selection.Excluded)
	require.NotEmpty(t, last.Prompt.Problem, "the step's prompts are not sharded")

	_, err = v.Outcomes(t.Context(), 3, false)
	require.ErrorIs(t, err, analysis.ErrNoStep)
}
