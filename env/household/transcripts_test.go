package household

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/testing/realdata"
)

// exchange is an action of a transcript and what followed.
type exchange struct{ action, seen string }

// transcript is one of ReAct's transcripts of ALFWorld.
type transcript struct {
	room, task string
	exchanges  []exchange
}

// readTranscript reads a transcript and leaves out thoughts, which ALFWorld never sees.
func readTranscript(text string) (t transcript) {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	t.room, t.task = strings.TrimSpace(lines[0]), strings.TrimSpace(lines[1])
	for i := 2; i < len(lines); i++ {
		action, ok := strings.CutPrefix(lines[i], ">")
		if action = strings.TrimSpace(action); !ok || strings.HasPrefix(action, "think:") || i+1 == len(lines) {
			continue
		}
		t.exchanges = append(t.exchanges, exchange{action, strings.TrimSpace(lines[i+1])})
	}
	return t
}

var numbered = regexp.MustCompile(`a ([a-z]+) (\d+)`)

func namesIn(text string) (out []named) {
	for _, m := range numbered.FindAllStringSubmatch(text, -1) {
		n, _ := strconv.Atoi(m[2])
		out = append(out, named{m[1], n})
	}
	return out
}

// world makes the world in which a transcript happens: the places of its first line, the door of each place as it is
// first seen, and the things where they are first seen.
func (t transcript) world(test *testing.T) *world {
	w := &world{You: -1, Limit: PaperTurns}
	for _, n := range namesIn(t.room) {
		w.Places = append(w.Places, place{n.class, n.number, noDoor})
	}
	known := map[named]bool{}
	doors := map[int]bool{}
	for _, x := range t.exchanges {
		for i, p := range w.Places {
			view := strings.Index(x.seen, "n the "+p.name()+", you see ")
			is := strings.Index(x.seen, "he "+p.name()+" is ")
			if view < 0 && is < 0 {
				continue
			}
			if is >= 0 && !doors[i] {
				w.Places[i].door = opened
				if strings.Contains(x.seen, p.name()+" is closed") || strings.HasPrefix(x.action, "open ") {
					w.Places[i].door = closed
				}
				doors[i] = true
			}
			for _, n := range namesIn(x.seen) {
				if k, _ := kindNamed(n.class); !known[n] {
					known[n] = true
					w.Things = append(w.Things, thing{class: n.class, number: n.number, at: spots{i}, can: k.can})
				}
			}
		}
	}
	words := strings.TrimSuffix(strings.TrimPrefix(t.task, "Your task is to: "), ".")
	if rest, ok := strings.CutPrefix(words, "find some "); ok { // a wording that ALFWorld no longer has
		words = "put a " + strings.Replace(rest, " and put it", "", 1)
	}
	goal, ok := readGoal(words)
	require.True(test, ok, t.task)
	w.Goal = goal
	return w
}

// readGoal finds the goal with that text.
func readGoal(text string) (goal, bool) {
	for _, t := range taskTypes {
		for wording := range t.wording {
			for _, k := range kinds {
				for _, where := range append(slices.Clone(placeClasses), lamp) {
					g := goal{Type: t.name, Thing: k.name, Where: where, Wording: wording}
					if g.check() == nil && g.String() == text {
						return g, true
					}
				}
			}
		}
	}
	return goal{}, false
}

// apart are the actions of the transcripts that something else follows here, and why.
var apart = map[string]string{
	"heat_0: open fridge 1":                 "the player did not go there: a line is missing",
	"put_0: go to cabinet 1":                "the list lacks its \"and\"",
	"cool_0: take pan 1 from stoveburner 3": "the answer is missing",
	"puttwo_2: go to cabinet 2":             "two cabinets are at one location; here each place has its own",
	"puttwo_2: look":                        "the same two cabinets",
}

// Real transcripts, played here, show the same texts: the first view, the task, what follows each action, and the end.
func TestRealTranscripts(t *testing.T) {
	text, err := os.ReadFile(realdata.Path(t, "alfworld", "alfworld_3prompts.json"))
	require.NoError(t, err)
	var all map[string]string
	require.NoError(t, json.Unmarshal(text, &all))
	e := newHousehold(t, Settings{Put: true})
	equal, verbs, differing := 0, map[string]int{}, map[string]bool{}
	for name, text := range all {
		_, name, _ = strings.Cut(name, "_")
		tr := readTranscript(text)
		w := tr.world(t)
		require.Equal(t, tr.room, w.middle(), name)
		for i, x := range tr.exchanges {
			c, ok := e.find(w, x.action)
			got := nothing
			if ok {
				w.do(c)
				got = e.answer(w, c)
			}
			if at := name + ": " + x.action; got != x.seen {
				require.Contains(t, apart, at, "here follows %q, and in the transcript %q", got, x.seen)
				differing[at] = true
				continue
			}
			equal++
			verbs[strings.Fields(x.action)[0]]++
			require.Equal(t, i == len(tr.exchanges)-1, w.reached(), "%s: %s", name, x.action)
		}
	}
	require.Len(t, all, 36)
	require.Len(t, differing, len(apart), "an exception is not needed: %v", differing)
	require.Greater(t, equal, 300)
	for _, verb := range strings.Fields("go open take put clean heat cool use") {
		require.Positive(t, verbs[verb], "no transcript has %s", verb)
	}
	t.Logf("%d answers are equal: %v", equal, verbs)
}
