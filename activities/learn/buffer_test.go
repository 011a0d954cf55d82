package learn

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/batch"
	"github.com/ropewalk/ropewalk/internal/refusal"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/rollout"
	"github.com/ropewalk/ropewalk/schema"
)

// turnRows are the rows of one trajectory of four turns, each with two tokens of context and two tokens of the policy,
// for a policy that sees the given number of earlier turns.
func turnRows(t *testing.T, history rollout.History) []schema.BatchRow {
	t.Helper()
	whole := schema.BatchRow{GroupID: schema.GroupID(1, 0), TrajectoryID: schema.TrajectoryID(1, 0, 0), Count: 1,
		Weight: 1}
	for k := range int32(16) {
		inLoss := k % 4 / 2
		whole.TokenIDs, whole.LossMask = append(whole.TokenIDs, k), append(whole.LossMask, inLoss)
		whole.OldLogProbs = append(whole.OldLogProbs, -float32(k*inLoss)/8)
		whole.Advantages = append(whole.Advantages, float32(inLoss)/2)
	}
	if history == (rollout.History{}) {
		return []schema.BatchRow{whole}
	}
	rows := batch.CutTurns(whole, history)
	require.Len(t, rows, 4)
	return rows
}

// The rows that are learnt from again are the rows that were learnt from, however many turns their policy saw.
func TestReplayRowsAreTheRowsOfTheBatch(t *testing.T) {
	for _, history := range []rollout.History{{}, {Turns: 1}, {Turns: 2}, {Turns: 3}, {Tokens: 1}, {Tokens: 8},
		{Turns: 2, Tokens: 9}, {Summary: 1}, {Summary: 2}, {Summary: 3}, {Own: true, Summary: 1}} {
		rows := turnRows(t, history)
		b := OpenBuffer(history, nil, nil)
		require.NoError(t, b.join(1,
			[]schema.RewardRow{{TrajectoryID: rows[0].TrajectoryID, GroupID: rows[0].GroupID}}, rows))
		require.Equal(t, rows, replayRows(b.held[rows[0].TrajectoryID], 0.5, history), "history %+v", history)
	}
}

func TestARowWithoutARewardIsRefused(t *testing.T) {
	var refused *refusal.Error
	err := OpenBuffer(rollout.History{}, nil, nil).Advance(ReplayRules(&recipes.Replay{Size: 1, Baselines: 1}), 1, nil,
		turnRows(t, rollout.History{}))
	require.ErrorAs(t, err, &refused)
	require.Equal(t, refusal.Corrupt, refused.Kind)
	require.EqualError(t, err, "trajectory 00001/0000/000 is in the batch and has no reward")
}

// The state after a step, opened again, is the state that the next step continues from.
func TestTheStateIsInItsRows(t *testing.T) {
	rules := ReplayRules(&recipes.Replay{Size: 1, Baselines: 4, FullRule: "size"})
	step := func(b *Buffer, n int, reward float64) {
		t.Helper()
		row := turnRows(t, rollout.History{})[0]
		row.GroupID, row.TrajectoryID = schema.GroupID(n, 0), schema.TrajectoryID(n, 0, 0)
		rewards := []schema.RewardRow{{GroupID: row.GroupID, TrajectoryID: row.TrajectoryID, Reward: reward},
			{GroupID: row.GroupID, TrajectoryID: schema.TrajectoryID(n, 0, 1)}}
		require.NoError(t, b.Advance(rules, n, rewards, []schema.BatchRow{row}))
	}
	first := OpenBuffer(rollout.History{}, nil, nil)
	step(first, 1, 4)
	require.Equal(t, Counts{Size: 1, Stored: 1, Baselines: 1, P50: 2}, first.Count())
	_, consumed := first.ReplayBatch()
	require.False(t, consumed)

	second := OpenBuffer(rollout.History{}, first.Rows(), first.Baselines())
	require.Equal(t, first.Rows(), second.Rows())
	require.Equal(t, first.Baselines(), second.Baselines())
	step(second, 2, 2)
	rows, consumed := second.ReplayBatch()
	require.True(t, consumed)
	require.Len(t, rows, 1)
	require.Empty(t, second.Rows())
	c := second.Count()
	require.Equal(t, 1, c.Imitated)
	require.Equal(t, float64(rows[0].Advantages[2]), c.Recalibrated)
	require.Equal(t, map[string]float64{StatBuffered: 0, StatStored: 0, StatBaselines: 2, StatP50: c.P50,
		StatConsumed: 1, StatImitated: 1, StatReplayed: c.Recalibrated}, c.Stats())
}
