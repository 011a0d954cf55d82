package learn

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/refusal"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/schema"
)

// row is a row of a batch: three tokens, of which two are trained on with the advantage.
func row(step, sample int, turn *int32, advantage float32) schema.BatchRow {
	return schema.BatchRow{
		GroupID: schema.GroupID(step, 0), TrajectoryID: schema.TrajectoryID(step, 0, sample), Count: 1, Weight: 1,
		TokenIDs: []int32{int32(step), int32(sample), 7}, LossMask: []int32{0, 1, 1},
		OldLogProbs: []float32{0, -0.5, -0.25}, Advantages: []float32{0, advantage, advantage}, Turn: turn,
	}
}

// Where rows are turns, the buffer holds turns. Each enters by its own advantage, whatever the trajectory's others are,
// and the buffer is full when it holds as many turns.
func TestTheBufferHoldsTurns(t *testing.T) {
	rules := ReplayRules(&recipes.Replay{Size: 2, Baselines: 4, FullRule: "size"})
	turn := func(n int32) *int32 { return &n }
	rewards := []schema.RewardRow{
		{GroupID: schema.GroupID(1, 0), TrajectoryID: schema.TrajectoryID(1, 0, 0), Reward: 1},
		{GroupID: schema.GroupID(1, 0), TrajectoryID: schema.TrajectoryID(1, 0, 1)},
	}
	first := OpenBuffer(nil, nil)
	require.NoError(t, first.Advance(rules, 1, rewards, []schema.BatchRow{
		row(1, 0, turn(0), 0.5), row(1, 0, turn(1), -3), row(1, 0, turn(2), 0.25), row(1, 1, turn(0), -0.5),
	}))
	require.Equal(t, Counts{Size: 2, Stored: 2, Baselines: 1, P50: 0.5}, first.Count())
	held := first.Rows()
	require.Equal(t, []float64{0.5, 0.25}, []float64{held[0].Advantage, held[1].Advantage})
	require.Equal(t, []int32{0, 2}, []int32{*held[0].Turn, *held[1].Turn})

	second := OpenBuffer(held, first.Baselines())
	require.NoError(t, second.Advance(rules, 2, nil, nil))
	again, consumed := second.ReplayBatch()
	require.True(t, consumed)
	require.Equal(t, []schema.BatchRow{row(1, 0, turn(0), 0.5), row(1, 0, turn(2), 0.5)}, again,
		"the reward 1 is 0.5 above the median")
}

func TestARowWithoutARewardIsRefused(t *testing.T) {
	var refused *refusal.Error
	err := OpenBuffer(nil, nil).Advance(ReplayRules(&recipes.Replay{Size: 1, Baselines: 1}), 1, nil,
		[]schema.BatchRow{row(1, 0, nil, 1)})
	require.ErrorAs(t, err, &refused)
	require.Equal(t, refusal.Corrupt, refused.Kind)
	require.EqualError(t, err, "trajectory 00001/0000/000 is in the batch and has no reward")
}

// The state after a step, opened again, is the state that the next step continues from.
func TestTheStateIsInItsRows(t *testing.T) {
	rules := ReplayRules(&recipes.Replay{Size: 1, Baselines: 4, FullRule: "size"})
	step := func(b *Buffer, n int, reward float64) {
		t.Helper()
		row := row(n, 0, nil, 0.5)
		rewards := []schema.RewardRow{{GroupID: row.GroupID, TrajectoryID: row.TrajectoryID, Reward: reward},
			{GroupID: row.GroupID, TrajectoryID: schema.TrajectoryID(n, 0, 1)}}
		require.NoError(t, b.Advance(rules, n, rewards, []schema.BatchRow{row}))
	}
	first := OpenBuffer(nil, nil)
	step(first, 1, 4)
	require.Equal(t, Counts{Size: 1, Stored: 1, Baselines: 1, P50: 2}, first.Count())
	_, consumed := first.ReplayBatch()
	require.False(t, consumed)

	second := OpenBuffer(first.Rows(), first.Baselines())
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
