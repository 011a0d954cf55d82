package stack

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Kills from outside never end a part that becomes healthy in between; failures of the program do.
func TestRestarts(t *testing.T) {
	tune := tuning{quickDeath: 10 * time.Second, maxQuick: 3, patience: time.Minute, backoff: time.Second}
	now := time.Unix(0, 0)
	at := func(seconds int) time.Time { return now.Add(time.Duration(seconds) * time.Second) }

	r := newRestarts(tune, now)
	var pauses []time.Duration
	for i := range 7 {
		pause, why := r.after(at(3*i), true, at(3*i+1))
		require.Empty(t, why)
		pauses = append(pauses, pause/time.Second)
	}
	require.Equal(t, []time.Duration{1, 2, 4, 8, 16, 16, 16}, pauses)
	pause, why := r.after(at(100), false, at(200))
	require.Empty(t, why)
	require.Equal(t, time.Second, pause, "it was healthy for long")

	r = newRestarts(tune, now)
	for i := range tune.maxQuick - 1 {
		_, why := r.after(time.Time{}, false, at(i))
		require.Empty(t, why)
		_, why = r.after(at(i), true, at(i))
		require.Empty(t, why)
	}
	_, why = r.after(at(5), false, at(6))
	require.Equal(t, "after 5 tries in a row", why)

	r = newRestarts(tune, now)
	_, why = r.after(time.Time{}, true, at(59))
	require.Empty(t, why)
	_, why = r.after(time.Time{}, true, at(61))
	require.Equal(t, "after 2 tries, none of which was ready, in 1m0s", why)
}
