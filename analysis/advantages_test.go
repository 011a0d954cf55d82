package analysis

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/schema"
)

func TestAdvantagesOfTurns(t *testing.T) {
	first := schema.BatchRow{LossMask: []int32{0, 1}, Advantages: []float32{0, 0.25}, Turn: new(int32(0))}
	second := schema.BatchRow{LossMask: []int32{0, 0, 0, 1, 1}, Advantages: []float32{0, 0, 0, -0.5, -0.75},
		Turn: new(int32(1))}
	turns := []schema.TurnRow{{TokenIDs: []int32{1, 2}}, {Turn: 1, TokenIDs: []int32{3, 4, 5}}}
	want := []float32{0, 0.25, 0, -0.5, -0.75}
	require.Equal(t, want, overlay([]schema.BatchRow{first, second}, turns))
	later := second // its prompt held other tokens before its own
	later.Advantages = []float32{0, 0, 0, 0, -0.5, -0.75}
	require.Equal(t, want, overlay([]schema.BatchRow{first, later}, turns))
	require.Equal(t, []float32{0, 0.25}, overlay([]schema.BatchRow{{Advantages: []float32{0, 0.25}}}, nil),
		"a whole trajectory")
	mean, ok := MeanAdvantage(first, second)
	require.True(t, ok)
	require.InDelta(t, -1./3, mean, 1e-12)
	third := float32(1) / 3
	mean, ok = MeanAdvantage(schema.BatchRow{LossMask: []int32{1, 1, 1}, Advantages: []float32{third, third, third}})
	require.True(t, ok)
	require.Equal(t, float64(third), mean)
	_, ok = MeanAdvantage(schema.BatchRow{LossMask: []int32{0}, Advantages: []float32{0}})
	require.False(t, ok, "a masked trajectory is not learnt from")
}
