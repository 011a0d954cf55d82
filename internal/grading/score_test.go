package grading

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/selection"
	"github.com/ropewalk/ropewalk/schema"
)

func TestScoreEach(t *testing.T) {
	row := func(sample int) schema.TrajectoryRow {
		return schema.TrajectoryRow{GroupID: schema.GroupID(1, 0), TrajectoryID: schema.TrajectoryID(1, 0, sample)}
	}
	gone := row(3)
	why := "engine: lost"
	gone.Excluded = &why
	rows := []schema.TrajectoryRow{row(0), row(1), row(2), gone}
	broken := func(ids ...int) func(schema.TrajectoryRow) (schema.RewardRow, error) {
		return func(t schema.TrajectoryRow) (schema.RewardRow, error) {
			for _, id := range ids {
				if t.TrajectoryID == schema.TrajectoryID(1, 0, id) {
					panic(fmt.Sprintf("no reward for %d\nat all", id))
				}
			}
			return schema.RewardRow{GroupID: t.GroupID, TrajectoryID: t.TrajectoryID, Reward: 1, Verdict: "exact"}, nil
		}
	}
	done := 0
	count := func(schema.TrajectoryRow, schema.RewardRow) { done++ }
	scored, excluded, err := ScoreEach(rows, broken(1), count)
	require.NoError(t, err)
	require.Len(t, scored, 2)
	require.Equal(t, 2, done)
	require.Equal(t, []schema.SelectionRow{
		selection.Exclude("00001/0000", "00001/0000/001", "reward: panicked: no reward for 1"),
		selection.Exclude("00001/0000", "00001/0000/003", why),
	}, excluded)

	_, _, err = ScoreEach(rows, broken(0, 1, 2), count)
	require.ErrorContains(t, err, "score 3 trajectories: each of them fails: panicked: no reward for 0")

	scored, excluded, err = ScoreEach([]schema.TrajectoryRow{row(0), gone}, broken(0), count)
	require.NoError(t, err, "one alone says nothing of the reward")
	require.Empty(t, scored)
	require.Len(t, excluded, 2)

	invalid := func(t schema.TrajectoryRow) (schema.RewardRow, error) {
		r, err := broken()(t)
		if t.TrajectoryID == schema.TrajectoryID(1, 0, 2) {
			r.Verdict = ""
		}
		return r, err
	}
	_, excluded, err = ScoreEach(rows[:3], invalid, count)
	require.NoError(t, err)
	require.Equal(t, "reward: verdict: must not be empty", *excluded[0].Excluded)
}
