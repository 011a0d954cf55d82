package household

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/internal/testing/envtest"
)

// compared is a task for testdata/textworld_play.py, and what happens here.
type compared struct {
	Problem string   `json:"problem"`
	Goal    string   `json:"goal"`
	Actions []string `json:"actions"`
	turns   []turn
}

// turn is what a player sees.
type turn struct {
	Text       string   `json:"text"`
	Admissible []string `json:"admissible"`
	Won        bool     `json:"won"`
}

// TextWorld, with the domain and the grammar of PyPI's alfworld, gives the same texts, the same admissible commands and
// the same outcome at every turn of tasks of all types. `make test-worlds` installs both.
func TestTextWorldAgrees(t *testing.T) {
	python := os.Getenv("ROPEWALK_TEXTWORLD_PYTHON")
	if python == "" {
		if os.Getenv("ROPEWALK_REQUIRE_TEXTWORLD") != "" {
			t.Fatal("ROPEWALK_REQUIRE_TEXTWORLD is set, but ROPEWALK_TEXTWORLD_PYTHON names no Python")
		}
		t.Skip("ROPEWALK_TEXTWORLD_PYTHON names no Python with textworld and alfworld; make test-worlds makes one")
	}
	var games []compared
	for _, s := range []struct {
		Settings
		tasks int
	}{{Settings{Places: 8, Things: 8}, 44}, {Settings{}, 6}, {Settings{Rooms: []string{"kitchen"}, Places: 8}, 4}} {
		e := newHousehold(t, s.Settings)
		for i, task := range envtest.Take(t, e, env.HeldOut, 1, s.tasks) {
			games = append(games, played(t, e, task, rand.New(rand.NewPCG(uint64(i), 4))))
		}
	}
	compare(t, games, inTextWorld(t, python, games))
}

// cutting returns the commands that slice a thing, or nil if the room has no knife or nothing to slice.
func cutting(w *world) (out []string) {
	knife := slices.IndexFunc(w.Things, func(t thing) bool { return t.can&cuts != 0 })
	food := slices.IndexFunc(w.Things, func(t thing) bool { return t.can&slice != 0 })
	if knife < 0 || food < 0 {
		return nil
	}
	from, to := w.Places[w.Things[knife].at[0]], w.Places[w.Things[food].at[0]]
	out = append(out, "go to "+from.name())
	if from.door == closed {
		out = append(out, "open "+from.name())
	}
	out = append(out, "take "+w.Things[knife].name()+" from "+from.name(), "examine "+w.Things[knife].name())
	if from != to {
		out = append(out, "go to "+to.name())
	}
	return append(out, "slice "+w.Things[food].name()+" with "+w.Things[knife].name())
}

// played plays a task: what slices a thing if the room allows it, an unknown command and random ones, then what the
// expert does, with a random command now and then that the expert makes good for.
func played(t *testing.T, e *Household, task env.Task, rng *rand.Rand) compared {
	text, err := problemOf(task)
	require.NoError(t, err)
	w, err := e.readTask(task)
	require.NoError(t, err)
	g := compared{Problem: text, Goal: w.Goal.String()}
	state, seen, err := e.Reset(t.Context(), task)
	require.NoError(t, err)
	first, _ := seen.Text()
	g.turns = []turn{{Text: first, Admissible: seen.Admissible}}
	prefix := cutting(w)
	for done := false; !done; {
		var action string
		switch {
		case len(g.Actions) < len(prefix):
			action = prefix[len(g.Actions)]
		case len(g.Actions) == len(prefix):
			action = "sing"
		case len(g.Actions) < 10 || rng.IntN(5) == 0:
			action = seen.Admissible[rng.IntN(len(seen.Admissible))]
		default:
			plan, err := e.Solve(t.Context(), state)
			if err != nil {
				return g // the random commands have used up the turns
			}
			action = plan[0]
		}
		next, step, err := e.Step(t.Context(), state, action)
		require.NoError(t, err)
		text, _ := step.Observation.Text()
		g.Actions = append(g.Actions, action)
		g.turns = append(g.turns, turn{Text: text, Admissible: step.Observation.Admissible, Won: step.Success})
		state, seen, done = next, step.Observation, step.Done
	}
	return g
}

// inTextWorld plays the games in TextWorld.
func inTextWorld(t *testing.T, python string, games []compared) (out [][]turn) {
	folder := t.TempDir()
	source, target := filepath.Join(folder, "games.json"), filepath.Join(folder, "played.json")
	text, err := json.Marshal(games)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(source, text, 0o600))
	run := exec.CommandContext(t.Context(), python, "testdata/textworld_play.py", source, target)
	log, err := run.CombinedOutput()
	require.NoError(t, err, "%s", log)
	text, err = os.ReadFile(target)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &out))
	return out
}

// compare compares each turn. TextWorld lists things and places in an order of its own, and its list of commands is not
// empty after the end. The text of help differs.
func compare(t *testing.T, games []compared, theirs [][]turn) {
	require.Len(t, theirs, len(games))
	types, won, turns, verbs := map[string]int{}, 0, 0, map[string]int{}
	for i, g := range games {
		require.Len(t, theirs[i], len(g.turns), "game %d: %s", i, g.Goal)
		for k, their := range theirs[i] {
			mine, action := g.turns[k], "reset"
			if k > 0 {
				action = g.Actions[k-1]
			}
			if action != "help" {
				require.Equal(t, parts(mine.Text), parts(strings.TrimPrefix(their.Text, welcome)), "game %d: %s", i,
					action)
			}
			require.Equal(t, mine.Won, their.Won, "game %d: %s", i, action)
			if mine.Admissible != nil {
				require.Equal(t, mine.Admissible, their.Admissible, "game %d: %s", i, action)
			}
			verbs[strings.Fields(action)[0]]++
			turns++
			if mine.Won {
				won++
			}
		}
		types[g.Goal]++
	}
	require.Greater(t, won, len(games)*8/10)
	for _, verb := range strings.Fields("look inventory go open close take move examine use " +
		"clean heat cool slice sing") {
		require.Positive(t, verbs[verb], "no game has %s", verb)
	}
	t.Logf("%d games, %d won, %d turns: %v", len(games), won, turns, verbs)
}

// parts splits a text into its sentences, and the names of a list into an order of their own.
func parts(text string) []string {
	var out []string
	for _, sentence := range strings.Split(text, ". ") {
		head, names, ok := strings.Cut(sentence, "you see ")
		out = append(out, head)
		if !ok {
			continue
		}
		names, tail, _ := strings.Cut(names, ".")
		all := strings.Split(strings.ReplaceAll(names, ", and ", ", "), ", ")
		slices.Sort(all)
		out = append(append(out, all...), tail)
	}
	return out
}
