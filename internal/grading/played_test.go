package grading

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/refusal"
	"github.com/ropewalk/ropewalk/rl/reward"
	"github.com/ropewalk/ropewalk/schema"
)

func TestPlayedSumsTheTurns(t *testing.T) {
	rows := []schema.TransitionRow{
		{TrajectoryID: "a", Turn: 1, Reward: 10, Success: true, Valid: true}, {TrajectoryID: "a", Reward: -0.5},
		{TrajectoryID: "b", Reward: -1}, {TrajectoryID: "c", Reward: 3, Excluded: new("environment: lost")},
	}
	require.Equal(t, map[string]reward.Played{"a": {Paid: 9.5, Solved: true, Acted: 1}, "b": {Paid: -1}}, Played(rows))
	require.Equal(t, int32(1), rows[0].Turn, "the caller's rows stay in their order")
	require.Empty(t, Played(nil))
}

// A trajectory of an interactive environment has transitions, unless it was excluded.
func TestATrajectoryWithoutTransitionsIsRefused(t *testing.T) {
	row := told("7", "7")
	g := New(scoring(t, "reward={name: arlarena}"), 1)
	require.NoError(t, g.Check([]schema.TrajectoryRow{row}), "tasks are questions")
	g.Played = map[string]reward.Played{}
	var refused *refusal.Error
	require.ErrorAs(t, g.Check([]schema.TrajectoryRow{row}), &refused)
	require.Equal(t, refusal.Corrupt, refused.Kind)
	row.Excluded = new("environment: lost")
	require.NoError(t, g.Check([]schema.TrajectoryRow{row}))
	row.Excluded, g.Played[row.TrajectoryID] = nil, reward.Played{Paid: 2, Solved: true}
	require.NoError(t, g.Check([]schema.TrajectoryRow{row}))
	got, err := g.Score(row)
	require.NoError(t, err)
	require.Equal(t, 2.0, got.Reward)
	require.True(t, got.Success)
}
