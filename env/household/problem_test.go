package household

import (
	"context"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/internal/dataset"
	"github.com/ropewalk/ropewalk/internal/testing/envtest"
)

// libraryOf is a library of one game.
func libraryOf(g *game) *library {
	l := &library{byName: map[string]*game{g.name: g}}
	l.bank = dataset.NewBank("test", func(context.Context) (dataset.Tasks[*game], error) {
		return dataset.Tasks[*game]{Train: []*game{g}, HeldOut: []*game{g}}, nil
	})
	return l
}

// A generated task that is written as a problem and read again is the same game: each command has the same answer.
func TestProblemsAreReadAsTheyWereWritten(t *testing.T) {
	e := newHousehold(t, Settings{})
	types := map[string]bool{}
	for i, task := range envtest.Take(t, e, env.Train, 7, 60) {
		text, err := problemOf(task)
		require.NoError(t, err)
		g, err := readProblem(text)
		require.NoError(t, err, text)
		generated, err := e.readTask(task)
		require.NoError(t, err)
		g.name, g.words, g.start.Room, g.start.Limit = "g", words{help: helpText}, "g", generated.Limit
		g.start.Goal.Wording, g.start.Goal.Text = 0, generated.Goal.String()
		types[g.start.Goal.Type] = true
		player := &Household{settings: e.settings, games: libraryOf(g)}
		their := env.Task{Spec: string(g.start.encode())}
		ours, first, err := e.Reset(t.Context(), task)
		require.NoError(t, err)
		state, seen, err := player.Reset(t.Context(), their)
		require.NoError(t, err)
		want, _ := first.Text()
		got, _ := seen.Text()
		require.Equal(t, welcome+want, got)
		for rng := rand.New(rand.NewPCG(uint64(i), 1)); len(seen.Admissible) > 0; {
			require.Equal(t, first.Admissible, seen.Admissible)
			action := seen.Admissible[rng.IntN(len(seen.Admissible))]
			if plan, err := player.Solve(t.Context(), state); err == nil && rng.IntN(3) > 0 {
				action = plan[0]
			}
			var a, b env.Transition
			ours, a, err = e.Step(t.Context(), ours, action)
			require.NoError(t, err)
			state, b, err = player.Step(t.Context(), state, action)
			require.NoError(t, err)
			require.Equal(t, a, b, action)
			first, seen = a.Observation, b.Observation
		}
	}
	require.Len(t, types, 6)
}

// A problem that holds what the reader does not know is refused with the name of it.
func TestBadProblemsAreRefused(t *testing.T) {
	e := newHousehold(t, Settings{Types: []string{"pick"}})
	task := envtest.Take(t, e, env.Train, 1, 1)[0]
	text, err := problemOf(task)
	require.NoError(t, err)
	w, err := e.readTask(task)
	require.NoError(t, err)
	p := problem{world: w}
	thing, place := p.thingID(0), p.placeID(w.Things[0].at[0])
	class := w.Places[w.Things[0].at[0]].class
	inThing, typed := "(objectType ?o "+w.Goal.Thing+"Type)", "(receptacleType "+place+" "
	for want, change := range map[string][2]string{
		"is cut: 1 lists are open at its end":  {" (:metric minimize (total-cost))\n)", ""},
		`begins with "domain", want define`:    {"(define", "(domain"},
		"has the fact [holds agent1 " + thing:  {"(:init", "(:init (holds agent1 " + thing + ")"},
		"names mug_bar_9, which is not":        {"(:init", "(:init (pickupable mug_bar_9)"},
		place + " is at 0 locations, want one": {"(receptacleAtLocation " + place, "(= " + place},
		thing + " is in " + place + ", which":  {typed, "(= " + place + " "},
		thing + " lies in a place and has no":  {"(objectType " + thing, "(= " + thing},
		"the agent is at 0 locations, want":    {"(atLocation agent1", "(= agent1"},
		"no task type has the goal ":           {"(inReceptacle ?o ?r)", "(isHot ?o)"},
		"type pick needs 1 plunger and a ":     {inThing, "(objectType ?o plungerType)"},
		place + " has the types attictype":     {typed + class, typed + "attic"},
	} {
		bad := strings.Replace(text, change[0], change[1], 1)
		bad = strings.Replace(bad, "(:objects\n", "(:objects\n  atticType - rtype\n", 1)
		require.NotEqual(t, text, bad, want)
		_, err := readProblem(bad)
		require.ErrorContains(t, err, want)
	}
}
