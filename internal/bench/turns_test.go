package bench

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestSidesTakeTurns(t *testing.T) {
	var order []string
	side := func(name string, step float64) Side[float64] {
		n := 0.0
		return Side[float64]{name, func(context.Context) (float64, error) {
			order = append(order, name)
			n += step
			return n, nil
		}}
	}
	got, err := TakeTurns(t.Context(), Rounds(3), side("a", 1), side("b", 10))
	require.NoError(t, err)
	require.Equal(t, [][]float64{{1, 2, 3}, {10, 20, 30}}, got)
	require.Equal(t, []string{"a", "b", "a", "b", "a", "b"}, order)

	got, err = TakeTurns(t.Context(), AtLeast(2, 0), side("a", 1))
	require.NoError(t, err)
	require.Equal(t, [][]float64{{1, 2}}, got)
	synctest.Test(t, func(t *testing.T) {
		slow := Side[float64]{"slow", func(context.Context) (float64, error) {
			time.Sleep(time.Millisecond)
			return 1, nil
		}}
		got, err := TakeTurns(t.Context(), AtLeast(1, 5*time.Millisecond), slow)
		require.NoError(t, err)
		require.Len(t, got[0], 5)
	})
}

func TestTakeTurnsNamesTheSideThatFails(t *testing.T) {
	fault := errors.New("no")
	bad := Side[int]{"bad", func(context.Context) (int, error) { return 0, fault }}
	_, err := TakeTurns(t.Context(), Rounds(1), bad)
	require.ErrorIs(t, err, fault)
	require.EqualError(t, err, "bad: no")
}

func TestRatioIsTheMedianOfRatios(t *testing.T) {
	// The second round is disturbed on both sides; the ratio of the medians would be 3.
	require.Equal(t, 2.0, Ratio([]float64{8, 2, 6}, []float64{4, 1, 2}))
}

func TestColumn(t *testing.T) {
	type pair struct{ x, y float64 }
	require.Equal(t, []float64{2, 4}, Column([]pair{{1, 2}, {3, 4}}, func(p pair) float64 { return p.y }))
}
