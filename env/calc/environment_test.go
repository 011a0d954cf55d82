package calc

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/internal/testing/envtest"
)

func opened(t *testing.T) env.Environment {
	t.Helper()
	e, err := Open(env.Options{MaxTurns: 3, LevelShares: map[string]float64{"2": 0.5, "4": 0.5}})
	require.NoError(t, err)
	return e
}

func TestArithmeticConforms(t *testing.T) {
	envtest.Run(t, opened(t), envtest.Case{Tasks: 24, Turns: 2, Nonsense: []string{"", "twelve", "144/12"}})
}

// The environment draws the same problems that runs have drawn since the first records.
func TestDrawsAreThoseOfRecords(t *testing.T) {
	e := opened(t)
	for _, at := range []env.Draw{{Split: env.Train, Seed: 7, Step: 3, Index: 5, PerStep: 8},
		{Split: env.Train, Seed: 7, Step: 3, Index: 21, PerStep: 8}} {
		got, err := e.Task(t.Context(), at)
		require.NoError(t, err)
		require.Equal(t, Training(7, 3, at.Index, Shares{2: 0.5, 4: 0.5}), got)
	}
	want, err := Heldout(12)
	require.NoError(t, err)
	for _, i := range []int{7, 0, 11} {
		got, err := e.Task(t.Context(), env.Draw{Split: env.HeldOut, Seed: 9, Index: i})
		require.NoError(t, err)
		require.Equal(t, want[i], got)
	}
}

func TestTheGoldAnswerSucceeds(t *testing.T) {
	e := opened(t)
	for _, task := range envtest.Take(t, e, env.Train, 1, 8) {
		state, seen, err := e.Reset(t.Context(), task)
		require.NoError(t, err)
		text, ok := seen.Text()
		require.True(t, ok)
		require.Equal(t, task.Text, text)
		_, step, err := e.Step(t.Context(), state, task.Answer)
		require.NoError(t, err)
		require.True(t, step.Done && step.Success && step.Valid)
		gold, err := strconv.Atoi(task.Answer)
		require.NoError(t, err)
		_, step, err = e.Step(t.Context(), state, strconv.Itoa(gold+1))
		require.NoError(t, err)
		require.True(t, step.Done && step.Valid && !step.Success)
	}
}
