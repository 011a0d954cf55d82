package sandbox

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestDriveKeepsCallsInFlight(t *testing.T) {
	var calls, most, now atomic.Int64
	l, err := drive(t.Context(), func(context.Context) error {
		calls.Add(1)
		most.Store(max(most.Load(), now.Add(1)))
		time.Sleep(2 * time.Millisecond)
		now.Add(-1)
		return nil
	}, 3, 50*time.Millisecond)
	require.NoError(t, err)
	require.LessOrEqual(t, most.Load(), int64(3))
	require.Equal(t, int(calls.Load()), len(l.latencies))
	p50, _ := quantiles(l.latencies)
	require.GreaterOrEqual(t, p50, 2.0)
	require.GreaterOrEqual(t, l.spent, 50*time.Millisecond)
	require.InDelta(t, float64(calls.Load())/l.spent.Seconds(), l.perSecond(), 1e-9)
}

func TestDriveReturnsAFailure(t *testing.T) {
	fault := errors.New("no")
	_, err := drive(t.Context(), func(context.Context) error { return fault }, 2, time.Millisecond)
	require.ErrorIs(t, err, fault)
}
