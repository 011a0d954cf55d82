package offers

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/rl/diagnose"
	"github.com/ropewalk/ropewalk/schema"
)

// The returns of turns come from the rewards of actions; without actions, from the trajectory's reward. Entropies are
// means over the tokens of the response.
func TestSampledTrajectoriesAreJoined(t *testing.T) {
	calls := int32(1)
	turns := []schema.TurnRow{
		{TrajectoryID: "t", Turn: 1, AnchorHash: "y", ParsedCalls: &calls},
		{TrajectoryID: "t", Turn: 0, AnchorHash: "x", LossMask: []int32{0, 1, 1}, Entropies: []float32{9, 1, 3}},
	}
	reward := schema.RewardRow{TrajectoryID: "t", GroupID: "g", Reward: 2, ToolCalls: 2, ToolErrors: 1}
	got := Join([]schema.RewardRow{reward}, turns, nil)
	require.Len(t, got, 1)
	require.Equal(t, []float64{1.9, 2}, []float64{got[0].Turns[0].Return, got[0].Turns[1].Return})
	require.Equal(t, diagnose.SampledTurn{Anchor: "x", Return: 1.9, Entropy: 2}, got[0].Turns[0])
	require.True(t, got[0].Turns[1].Valid)
	require.Equal(t, 1, got[0].Failed)

	acts := []schema.TransitionRow{{TrajectoryID: "t", Turn: 0, Situation: "s", Reward: 1, Valid: true},
		{TrajectoryID: "t", Turn: 1, Situation: "u", Reward: 10}}
	got = Join([]schema.RewardRow{reward}, turns, acts)
	require.Equal(t, diagnose.SampledTurn{Anchor: "s", Return: 10.5, Valid: true, Entropy: 2}, got[0].Turns[0])
	require.False(t, got[0].Turns[1].Valid)

	// A summary between them changes nothing.
	turns[0].LossMask, turns[0].Entropies = []int32{1}, []float32{1}
	got = Join([]schema.RewardRow{reward}, turns, acts)
	turns[0].Turn, acts[1].Turn = 2, 2
	with := Join([]schema.RewardRow{reward}, append(turns, schema.TurnRow{TrajectoryID: "t", Turn: 1,
		Summary: new(true), ParsedCalls: new(int32)}), acts)
	require.Equal(t, got, with)
}
