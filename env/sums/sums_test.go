package sums

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/internal/testing/envtest"
)

func opened(t *testing.T, s env.Settings) env.Environment {
	t.Helper()
	e, err := open(env.Options{MaxTurns: 1, Settings: s})
	require.NoError(t, err)
	return e
}

func settings(operators string, lowest, highest int) env.Settings {
	return env.Settings{"operators": operators, "lowest": lowest, "highest": highest, "factor": 12}
}

func TestSumsConform(t *testing.T) {
	envtest.Run(t, opened(t, settings("+-*", 2, 99)),
		envtest.Case{Tasks: 40, Turns: 1, Nonsense: []string{"", "twelve", "1/2"}})
}

func TestTheGoldAnswerSucceeds(t *testing.T) {
	e := opened(t, settings("+-*", 2, 99))
	for _, task := range envtest.Take(t, e, env.Train, 1, 60) {
		state, seen, err := e.Reset(t.Context(), task)
		require.NoError(t, err)
		text, ok := seen.Text()
		require.True(t, ok)
		require.Equal(t, task.Text, text)
		_, step, err := e.Step(t.Context(), state, task.Answer)
		require.NoError(t, err)
		require.True(t, step.Done && step.Success && step.Valid && step.Reward == 1)
		gold, err := strconv.Atoi(task.Answer)
		require.NoError(t, err)
		_, step, err = e.Step(t.Context(), state, strconv.Itoa(gold-1))
		require.NoError(t, err)
		require.True(t, step.Done && step.Valid && !step.Success && step.Reward == 0)
	}
}

func TestAnswersByHand(t *testing.T) {
	for expression, want := range map[string]string{"37 + 45": "82", "4 - 19": "-15", "12 * 7": "84", "0 + 0": "0"} {
		got, err := read(expression)
		require.NoError(t, err)
		require.Equal(t, want, got.Answer)
		require.Equal(t, "What is "+expression+"?", got.Text)
	}
	for _, bad := range []string{"", "3", "3 + ", "3+4", "3 / 4", "a + 4", "-3 + 4", "3 + 10000", "3 + 4 + 5"} {
		_, err := read(bad)
		require.Error(t, err, bad)
	}
}

// The held-out problems are distinct, and settings with few problems say so.
func TestHeldOutProblems(t *testing.T) {
	seen := map[string]bool{}
	for _, task := range envtest.Take(t, opened(t, settings("+", 2, 99)), env.HeldOut, 1, 600) {
		require.False(t, seen[task.ID], task.Spec)
		seen[task.ID] = true
	}
	few := opened(t, settings("+", 1, 9))
	_, err := few.Task(t.Context(), env.Draw{Split: env.HeldOut, Index: 81})
	require.ErrorContains(t, err, "the settings allow about")
	_, err = open(env.Options{Settings: settings("+", 50, 9)})
	require.ErrorContains(t, err, "lowest")
}
