package main

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestQuantileIsNearestRank(t *testing.T) {
	hundred := make([]time.Duration, 100)
	for i := range hundred {
		hundred[i] = time.Duration(i + 1)
	}
	require.Equal(t, time.Duration(50), quantile(hundred, 0.50))
	require.Equal(t, time.Duration(99), quantile(hundred, 0.99))
	require.Equal(t, time.Duration(7), quantile([]time.Duration{7}, 0.99))
}

func TestMeasureCountsEveryCall(t *testing.T) {
	var calls, most, now atomic.Int64
	r, err := measure(t.Context(), func(context.Context) error {
		calls.Add(1)
		most.Store(max(most.Load(), now.Add(1)))
		time.Sleep(2 * time.Millisecond)
		now.Add(-1)
		return nil
	}, 3, 50*time.Millisecond)
	require.NoError(t, err)
	require.LessOrEqual(t, most.Load(), int64(3))
	require.Greater(t, r.Calls, 3)
	require.Less(t, int64(r.Calls), calls.Load()) // the warm-up's are not counted
	require.GreaterOrEqual(t, r.P50Ms, 2.0)
}

func TestMeasureReturnsAFailure(t *testing.T) {
	fault := errors.New("no")
	_, err := measure(t.Context(), func(context.Context) error { return fault }, 2, time.Millisecond)
	require.ErrorIs(t, err, fault)
}
