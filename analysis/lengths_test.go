package analysis_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/analysis/recordtest"
	"github.com/ropewalk/ropewalk/internal/simulate"
	"github.com/ropewalk/ropewalk/rl/scheduler"
	"github.com/ropewalk/ropewalk/store/mem"
)

// A recorded step becomes rollouts with the lengths of its turns and the times of its calls, and can be simulated.
func TestLengths(t *testing.T) {
	objects := mem.New()
	recordtest.Train(t, objects, recordtest.Options{Run: "r", Steps: 2, Seed: 1})
	v, err := analysis.New(objects).Visible(t.Context(), "r")
	require.NoError(t, err)
	rollouts, err := v.Lengths(t.Context(), 2)
	require.NoError(t, err)
	require.Len(t, rollouts, recordtest.Groups*recordtest.Samples)
	for i, r := range rollouts {
		require.Equal(t, i/recordtest.Samples, r.Group)
		require.Equal(t, 3, r.Prompt)
		want := []simulate.Turn{{Tokens: 2}}
		if i%recordtest.Samples%2 == 0 { // it calls its tool, for a millisecond
			want = []simulate.Turn{{Tokens: 2, Result: 3, Tool: 0.001}, {Tokens: 2}}
		}
		require.Equal(t, want, r.Turns, "rollout %d", i)
	}
	job := &simulate.Job{Engines: []simulate.Model{{Tokens: 40, Rows: 4, Base: 1, Prefill: 1e6}}}
	require.NoError(t, job.Take(rollouts))
	c, err := simulate.Compare("r", job, simulate.Options{Settings: scheduler.Default()})
	require.NoError(t, err)
	require.Equal(t, len(rollouts), c.Dynamic.Ended)
	require.Zero(t, c.Dynamic.Evictions)

	_, err = v.Lengths(t.Context(), 3)
	require.ErrorIs(t, err, analysis.ErrNoStep)
	job.Engines[0].Tokens = 5
	require.ErrorContains(t, job.Take(rollouts), "a rollout may hold 10 tokens, and the largest engine 5")
	require.Error(t, job.Take(nil))
}
