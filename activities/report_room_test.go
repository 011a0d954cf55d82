package activities

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/activities/api"
)

// A worker says how many shards it runs at once, and what its engine is. One that cannot run the recipe's calls
// refuses.
func TestReportRoom(t *testing.T) {
	b := episodesOf(t, 1)
	b.deps.shards = 3
	out, err := do(b.stepBench, ReportRoom{b.deps}.Execute, api.RoomInput{Scope: b.scope})
	require.NoError(t, err)
	require.Equal(t, api.Room{Host: hostname(), Shards: 3, Capacity: api.Capacity{Engine: "a fake"}}, out)
	b.deps.Sandbox = nil
	_, err = do(b.stepBench, ReportRoom{b.deps}.Execute, api.RoomInput{Scope: b.scope})
	require.ErrorContains(t, err, "this one has no sandbox")
}

// An attempt says how many tokens it has sampled itself. What it adopts does not count.
func TestEpisodesCountTheTokensOfTheAttempt(t *testing.T) {
	b := episodesOf(t, 2)
	first, err := b.run()
	require.NoError(t, err)
	require.Positive(t, first.Tokens)
	again, err := b.run()
	require.NoError(t, err)
	require.Zero(t, again.Tokens)
}
