package remote

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/internal/python"
	"github.com/ropewalk/ropewalk/internal/testing/envtest"
	"github.com/ropewalk/ropewalk/internal/testing/pythontest"
)

// The package gym-sokoban, an environment of Gym's older form, plays through the adapter.
func TestRealGymSokoban(t *testing.T) {
	if named := os.Getenv("ROPEWALK_SOKOBAN_PYTHON"); named != "" {
		t.Setenv(python.Variable, named)
	}
	t.Setenv("ROPEWALK_SOKOBAN_INTERPRETER", pythontest.Need(t, "SOKOBAN", "gym_sokoban"))
	names := strings.Split("no operation,push up,push down,push left,push right,move up,move down,move left,"+
		"move right", ",")
	e := opened(t, "rooms:Rooms", map[string]any{"size": 6, "boxes": 1, "steps": 20}, env.Settings{
		"interpreter": "ROPEWALK_SOKOBAN_INTERPRETER", "actions": strings.Join(names, ","),
		"instruction": "Push the box onto the target."})
	envtest.Run(t, e, envtest.Case{Tasks: 4, Turns: 24, Nonsense: []string{"", "jump"}})

	// Random play solves a room of a few moves, and the package itself says so.
	solved := 0
	for i := range 8 {
		task, err := e.Task(t.Context(), env.Draw{Split: env.HeldOut, Index: i})
		require.NoError(t, err)
		state, seen, err := e.Reset(t.Context(), task)
		require.NoError(t, err)
		text, _ := seen.Text()
		require.Equal(t, 6, len(strings.Split(text, "\n")))
		for turn := 0; ; turn++ {
			next, got, err := e.Step(t.Context(), state, names[1+(turn*7+i)%8])
			require.NoError(t, err)
			if state = next; !got.Done {
				continue
			}
			require.Equal(t, got.Reward > 5, got.Success, "a solved room pays 10")
			if got.Success {
				solved++
			}
			break
		}
	}
	t.Logf("%d of 8 rooms were solved", solved)
}

// An environment of the package Gymnasium plays as it is, by the settings of docs/bring-your-own.md.
func TestRealGymnasium(t *testing.T) {
	if named := os.Getenv("ROPEWALK_BABYAI_PYTHON"); named != "" {
		t.Setenv(python.Variable, named)
	}
	t.Setenv("ROPEWALK_BABYAI_INTERPRETER", pythontest.Need(t, "BABYAI", "gymnasium"))
	e := opened(t, "gymnasium:make", map[string]any{"id": "FrozenLake-v1", "is_slippery": false}, env.Settings{
		"interpreter": "ROPEWALK_BABYAI_INTERPRETER", "actions": "left, down, right, up", "instruction": "Cross."})
	_, state := start(t, e)
	for i, action := range []string{"down", "down", "right", "right", "down", "right"} {
		next, got, err := e.Step(t.Context(), state, action)
		require.NoError(t, err)
		require.Equal(t, i == 5, got.Success)
		state = next
	}
}
