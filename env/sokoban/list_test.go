package sokoban

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/internal/testing/envtest"
)

func TestListedRoomsConform(t *testing.T) {
	s := DefaultSettings()
	s.List, s.Open = true, true
	envtest.Run(
		t,
		newSokoban(t, s),
		envtest.Case{Tasks: 24, Turns: 30, Nonsense: []string{"", "push the box"}, Solved: 1},
	)
}

func TestListOfARoom(t *testing.T) {
	e := newSokoban(t, Settings{MaxTurns: GymTurns, Size: 6, Boxes: 1, MinMoves: 2, MaxMoves: 12, List: true})
	task, err := e.task([]string{
		"#######",
		"#@$ .##",
		"# $.  #",
		"#######"}, 1)
	require.NoError(t, err)
	state, first, err := e.Reset(t.Context(), task)
	require.NoError(t, err)
	text, _ := first.Text()
	require.Equal(t, "4 x 7\nP b2\nX b3\nX c3\nO b5\nO c4\n# b6", text)
	_, next, err := e.Step(t.Context(), state, "right")
	require.NoError(t, err)
	text, _ = next.Observation.Text()
	require.Equal(t, "4 x 7\nP b3\nX b4\nX c3\nO b5\nO c4\n# b6", text)
}

// A list is drawn for people as the room that it lists, at every turn of the expert.
func TestListsAreDrawn(t *testing.T) {
	s := DefaultSettings()
	for _, open := range []bool{false, true} {
		s.Open = open
		rooms := newSokoban(t, s)
		s.List = true
		lists := newSokoban(t, s)
		s.List = false
		for i := range 30 {
			task, err := rooms.Task(t.Context(), env.Draw{Split: env.Train, Seed: 3, Step: 1, Index: i})
			require.NoError(t, err)
			again, err := lists.Task(t.Context(), env.Draw{Split: env.Train, Seed: 3, Step: 1, Index: i})
			require.NoError(t, err)
			require.Equal(t, task, again, "the setting changes no room")
			state, want, err := rooms.Reset(t.Context(), task)
			require.NoError(t, err)
			_, got, err := lists.Reset(t.Context(), task)
			require.NoError(t, err)
			actions, err := rooms.Solve(t.Context(), state)
			require.NoError(t, err)
			for _, action := range append(actions, "") {
				a, _ := want.Text()
				b, _ := got.Text()
				require.Equal(t, a, drawnList(b))
				for _, text := range strings.Split(b, "\n") {
					require.Contains(t, linesOf(s.Size), text, "each line is a fixed text")
				}
				if action == "" {
					break
				}
				var end, same env.Transition
				at := state
				state, end, err = rooms.Step(t.Context(), at, action)
				require.NoError(t, err)
				_, same, err = lists.Step(t.Context(), at, action)
				require.NoError(t, err)
				want, got = end.Observation, same.Observation
			}
		}
	}
}

func TestOtherTextsAreNotDrawn(t *testing.T) {
	for _, text := range []string{
		"", "6 x 6 ", "06 x 6", "2 x 2", "6 x 600", "6 x 6\nP", "6 x 6\nP g2", "6 x 6\nP b0", "6 x 6\nP b7",
		"6 x 6\nP b2\nP b2", "6 x 6\nQ b2", "6 x 6\nP b2\nX b2", "6 x 6\nP  b2", "6 x 6\nP b2 ", "-1 x 6", "<b>",
		"9999999999999999999 x 6", "6 x 6\nP b9999999999999999999",
	} {
		require.Equal(t, text, drawnList(text))
	}
}

func TestOpenRoomsHaveNoWallsInside(t *testing.T) {
	s := DefaultSettings()
	s.Open = true
	e := newSokoban(t, s)
	for i := range 20 {
		task, err := e.Task(t.Context(), env.Draw{Split: env.HeldOut, Index: i})
		require.NoError(t, err)
		_, o, err := e.Reset(t.Context(), task)
		require.NoError(t, err)
		text, _ := o.Text()
		require.Equal(t, 4*(s.Size-1), strings.Count(text, "#"))
	}
}
