package cpu

import (
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/rescue"
)

// TestTeam: every job runs once for each part and is over when run returns, whether parts look out or sleep.
func TestTeam(t *testing.T) {
	for _, parts := range []int{1, 2, 3, runtime.GOMAXPROCS(0) + 2} {
		team := newTeam(parts)
		sums := make([]int, parts)
		for i := range 3000 {
			require.NoError(t, team.run(func(part int) error {
				sums[part] += i
				return nil
			}))
			if i%1000 == 999 {
				time.Sleep(2 * time.Millisecond) // long enough for helpers to sleep
			}
		}
		for part, sum := range sums {
			require.Equal(t, 3000*2999/2, sum, "part %d of %d", part, parts)
		}
		team.stop()
	}
}

func TestTeamErrors(t *testing.T) {
	team := newTeam(3)
	defer team.stop()
	first, second := errors.New("first"), errors.New("second")
	err := team.run(func(part int) error { return []error{nil, first, second}[part] })
	require.ErrorIs(t, err, first)
	for _, bad := range []int{0, 2} {
		err = rescue.Do(func() error {
			return team.run(func(part int) error {
				if part == bad {
					panic("broken")
				}
				return nil
			})
		})
		require.ErrorContains(t, err, "panicked: broken")
	}
	require.NoError(t, team.run(func(int) error { return nil }), "the team goes on")
}
