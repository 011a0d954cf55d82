package bench

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestQuantileIsNearestRank(t *testing.T) {
	hundred := make([]time.Duration, 100)
	for i := range hundred {
		hundred[i] = time.Duration(i + 1)
	}
	require.Equal(t, time.Duration(1), Quantile(hundred, 0))
	require.Equal(t, time.Duration(50), Quantile(hundred, 0.50))
	require.Equal(t, time.Duration(99), Quantile(hundred, 0.99))
	require.Equal(t, time.Duration(100), Quantile(hundred, 1))
	require.Equal(t, time.Duration(7), Quantile([]time.Duration{7}, 0.99))
	require.Equal(t, 3.0, Quantile([]float64{1, 3}, 0.51))
}

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		values []float64
		want   float64
	}{
		{[]float64{5}, 5},
		{[]float64{9, 1}, 5},
		{[]float64{9, 1, 2}, 2},
		{[]float64{4, 1, 3, 2}, 2.5},
	} {
		before := append([]float64(nil), c.values...)
		require.Equal(t, c.want, Median(c.values))
		require.Equal(t, before, c.values)
	}
}

func TestSlope(t *testing.T) {
	for _, c := range []struct {
		name string
		x, y []float64
		want float64
	}{
		{"line", []float64{0, 1, 2, 3}, []float64{1, 3, 5, 7}, 2},
		{"flat with an outlier", []float64{0, 1, 2, 3, 4}, []float64{5, 5, 900, 5, 5}, 0},
		{"line with an outlier", []float64{0, 1, 2, 3, 4, 5, 6}, []float64{0, -1, -2, 70, -4, -5, -6}, -1},
		{"one point", []float64{4}, []float64{2}, 0},
		{"no two x differ", []float64{1, 1}, []float64{2, 9}, 0},
	} {
		require.InDelta(t, c.want, Slope(c.x, c.y), 1e-12, c.name)
	}
}
