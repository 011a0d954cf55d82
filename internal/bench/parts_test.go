package bench

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestOutcomesOfParts(t *testing.T) {
	fault := errors.New("no")
	for _, c := range []struct {
		name   string
		err    error
		status string
		why    string
		line   string
	}{
		{"well", nil, StatusOK, "", "ok, 0 s"},
		{"failed", fault, StatusFailed, "no", "failed after 0 s: no"},
		{"skipped", fmt.Errorf("size 4B: %w", Skip("no %s", "driver")), StatusSkipped, "size 4B: no driver",
			"skipped: size 4B: no driver"},
	} {
		t.Run(c.name, func(t *testing.T) {
			out, err := RunPart(t.Context(), 0, func(context.Context) error { return c.err })
			require.Equal(t, c.status, out.Status)
			require.Equal(t, c.why, out.Why)
			require.Equal(t, c.line, out.String())
			require.Equal(t, c.status == StatusFailed, err != nil)
		})
	}
	require.False(t, Skipped(fault))
}

func TestPartTakesTooLong(t *testing.T) {
	out, err := RunPart(t.Context(), time.Millisecond, func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Equal(t, StatusFailed, out.Status)
	require.Contains(t, out.Why, "it took longer than 1ms: ")
}

func TestChoose(t *testing.T) {
	known := []string{"tokens", "tax"}
	got, err := Choose("part", "tax,tokens,", known)
	require.NoError(t, err)
	require.Equal(t, []string{"tax", "tokens"}, got)
	got, err = Choose("part", "", known)
	require.NoError(t, err)
	require.Empty(t, got)
	_, err = Choose("part", "speed", known)
	require.EqualError(t, err, `there is no part "speed"; there are tokens, tax`)
}
