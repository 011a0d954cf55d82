package verdict

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/env/remote"
)

// Trajectories that have a result are called with again only to tell a broken function from broken trajectories: the
// first of them, if others have none.
func TestOneResultIsMadeAgainWhereOthersAreMissing(t *testing.T) {
	made := func(at ...int) map[int]remote.Scored {
		out := map[int]remote.Scored{}
		for _, i := range at {
			out[i] = remote.Scored{Score: 1}
		}
		return out
	}
	require.Equal(t, []int{0, 1, 2}, leftToScore(3, nil))
	require.Empty(t, leftToScore(3, made(0, 1, 2)))
	require.Equal(t, []int{0, 1, 3}, leftToScore(4, made(1, 2)))
	require.Equal(t, []int{0, 2}, leftToScore(3, made(0, 1)))
	require.Empty(t, leftToScore(0, nil))
}
