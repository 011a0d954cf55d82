package sokoban

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/internal/testing/envtest"
)

func newSokoban(t *testing.T, s Settings) *Sokoban {
	t.Helper()
	e, err := New(s)
	require.NoError(t, err)
	return e
}

func TestGeneratedRoomsConform(t *testing.T) {
	larger := DefaultSettings()
	larger.Size, larger.Boxes, larger.MaxTurns, larger.MaxMoves = 8, 3, 60, 40
	for name, s := range map[string]Settings{"papers": DefaultSettings(), "larger": larger} {
		t.Run(name, func(t *testing.T) {
			envtest.Run(t, newSokoban(t, s), envtest.Case{
				Tasks: 24, Turns: 30, Nonsense: []string{"", "push the box", "<action></action>"}, Solved: 1,
			})
		})
	}
}

// begin begins an episode in a room given in Boxoban's form.
func begin(t *testing.T, e *Sokoban, rows ...string) env.State {
	t.Helper()
	task, err := e.task(rows, 1)
	require.NoError(t, err)
	state, _, err := e.Reset(t.Context(), task)
	require.NoError(t, err)
	return state
}

// Worked by hand from gym-sokoban's rules. Each line is an action, the two rows after it, and the turn's reward.
func TestRulesAndRewards(t *testing.T) {
	e := newSokoban(t, Settings{MaxTurns: GymTurns, Size: 6, Boxes: 1, MinMoves: 2, MaxMoves: 12})
	state := begin(t, e,
		"#######",
		"#@$ . #",
		"# $.  #",
		"#######")
	for i, c := range []struct {
		action, first, second string
		reward                float64
		valid, done           bool
	}{
		{"right", "#_PXO_#", "#_XO__#", -0.1, true, false},
		{"<action>Right</action>", "#__P√_#", "#_XO__#", 0.9, true, false}, // onto a target
		{"right", "#___SX#", "#_XO__#", -1.1, true, false},                 // off it again
		{"right", "#___SX#", "#_XO__#", -0.1, true, false},                 // a wall is behind the box
		{"still", "#___SX#", "#_XO__#", -0.1, true, false},
		{"sing", "#___SX#", "#_XO__#", -0.1, false, false},
		{"up", "#___SX#", "#_XO__#", -0.1, true, false}, // a wall
		{"DOWN", "#___OX#", "#_XOP_#", -0.1, true, false},
		{"left", "#___OX#", "#_XS__#", -0.1, true, false},
		{"left", "#___OX#", "#XPO__#", -0.1, true, false},
	} {
		next, step, err := e.Step(t.Context(), state, c.action)
		require.NoError(t, err)
		text, ok := step.Observation.Text()
		require.True(t, ok)
		require.Equal(t, []string{"#######", c.first, c.second, "#######"}, strings.Split(text, "\n"), "action %d", i)
		require.InDelta(t, c.reward, step.Reward, 1e-12, "action %d", i)
		require.Equal(t, c.valid, step.Valid, "action %d", i)
		require.Equal(t, c.done, step.Done, "action %d", i)
		state = next
	}
}

func TestTheLastBoxEndsTheEpisode(t *testing.T) {
	e := newSokoban(t, DefaultSettings())
	state := begin(t, e, "#####", "#@$.#", "#####")
	_, step, err := e.Step(t.Context(), state, "right")
	require.NoError(t, err)
	require.True(t, step.Done && step.Success)
	require.InDelta(t, 10.9, step.Reward, 1e-12)
}

func TestOnlyTheGoalMayPay(t *testing.T) {
	s := DefaultSettings()
	s.GoalOnly = true
	e := newSokoban(t, s)
	state := begin(t, e, "######", "#@$ .#", "######")
	for _, want := range []float64{0, 10} {
		next, step, err := e.Step(t.Context(), state, "right")
		require.NoError(t, err)
		require.InDelta(t, want, step.Reward, 1e-12)
		state = next
	}
}

func TestTheLimitOfTurnsEndsTheEpisode(t *testing.T) {
	s := DefaultSettings()
	s.MaxTurns, s.MaxMoves = 3, 3
	e := newSokoban(t, s)
	state := begin(t, e, "#####", "#@$.#", "#####")
	for turn := range 3 {
		next, step, err := e.Step(t.Context(), state, "left")
		require.NoError(t, err)
		require.Equal(t, turn == 2, step.Done)
		require.False(t, step.Success)
		state = next
	}
}

// A generated room's number of moves equals the length of the shortest solution of a plain breadth-first search over
// moves.
func TestRoomsNeedAsManyMovesAsTheySay(t *testing.T) {
	s := DefaultSettings()
	s.Boxes = 2
	e := newSokoban(t, s)
	longest := 0
	for _, task := range envtest.Take(t, e, env.Train, 3, 60) {
		state, _, err := e.Reset(t.Context(), task)
		require.NoError(t, err)
		_, r, err := readState(state)
		require.NoError(t, err)
		require.Equal(t, task.Level, shortest(r), "room\n%s", draw(r))
		actions, err := e.Solve(t.Context(), state)
		require.NoError(t, err)
		require.Len(t, actions, task.Level, "the expert's solution is not the shortest one")
		require.LessOrEqual(t, task.Level, s.MaxMoves)
		longest = max(longest, task.Level)
	}
	require.Greater(t, longest, 6, "all rooms are trivial")
}

// shortest returns the number of moves to a solved room by brute force, or −1 if there is no solution.
func shortest(start *room) int {
	seen := map[string]bool{string(start.cells): true}
	layer := []*room{start}
	for moves := 0; len(layer) > 0; moves++ {
		var next []*room
		for _, r := range layer {
			if _, off := r.done(); off == 0 {
				return moves
			}
			for _, d := range directions {
				moved := *r
				moved.cells = bytes.Clone(r.cells)
				if moved.push(d) && !seen[string(moved.cells)] {
					seen[string(moved.cells)] = true
					next = append(next, &moved)
				}
			}
		}
		layer = next
	}
	return -1
}

func TestStuckRoomsAreUnsolved(t *testing.T) {
	e := newSokoban(t, DefaultSettings())
	for _, rows := range [][]string{
		{"#####", "#$ .#", "#@  #", "#####"},                              // a box in a corner
		{"######", "#@$ $#", "#  ..#", "#    #", "######"},                // the second box cannot leave the wall
		{"#########", "#@$     #", "#       #", "#      .#", "#########"}, // too far away? no: at its edge for good
	} {
		state := begin(t, e, rows...)
		_, err := e.Solve(t.Context(), state)
		require.ErrorIs(t, err, env.ErrUnsolved, "room\n%s", strings.Join(rows, "\n"))
	}
}

func TestBadSettingsAreRefused(t *testing.T) {
	for field, change := range map[string]func(*Settings){
		"max turns": func(s *Settings) { s.MaxTurns = 0 },
		"size":      func(s *Settings) { s.Size = 4 },
		"boxes":     func(s *Settings) { s.Boxes = 9 },
		"min moves": func(s *Settings) { s.MinMoves = 0 },
		"max moves": func(s *Settings) { s.MaxMoves = 16 },
	} {
		s := DefaultSettings()
		change(&s)
		_, err := New(s)
		require.ErrorContains(t, err, field)
	}
}

func TestSituationsIgnoreTurns(t *testing.T) {
	e := newSokoban(t, DefaultSettings())
	state := begin(t, e, "#####", "#@$.#", "#####")
	before, err := e.Situation(state)
	require.NoError(t, err)
	next, _, err := e.Step(t.Context(), state, "up")
	require.NoError(t, err)
	after, err := e.Situation(next)
	require.NoError(t, err)
	require.Equal(t, before, after)
	require.NotEqual(t, state, next, "a state counts its turns")
}
