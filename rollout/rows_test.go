package rollout

import (
	"errors"
	"slices"
	"testing"

	"github.com/ropewalk/ropewalk/schema"
)

// committed holds the rows that a rollout's stages would have committed so far.
type committed struct {
	prompts []schema.PromptRow
	turns   []schema.TurnRow
	calls   []schema.ToolCallRow
}

func (c committed) rebuild(t *testing.T, l *Loop, samples int) []*Episode {
	t.Helper()
	episodes, err := l.Episodes(t.Context(), c.prompts, samples, Rows{Turns: c.turns, Calls: c.calls})
	if err != nil {
		t.Fatal(err)
	}
	return episodes
}

// After every half step of every turn, the state rebuilt from rows equals the state in memory, and every row passes the
// record's own checks.
func TestRebuiltStateIsTheStateInMemory(t *testing.T) {
	const samples = 6
	l := newLoop(t, settings, 11)
	engine := &babbler{tok: l.tok}
	c := committed{prompts: prompts(l, 20)}
	live := c.rebuild(t, l, samples)
	check := func(when string, turn int) {
		t.Helper()
		if d := difference(live, c.rebuild(t, l, samples)); d != "" {
			t.Fatalf("turn %d after %s (-memory +rows):\n%s", turn, when, d)
		}
	}
	for turn := 0; active(live) > 0; turn++ {
		req, rows := l.NextRequest(live)
		g, err := engine.Generate(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Absorb(t.Context(), live, rows, g, "v"); err != nil {
			t.Fatal(err)
		}
		c.turns = append(c.turns, TurnRows(live, turn)...)
		check("generation", turn)
		if err := callsOf(new(python)).answer(t.Context(), l, live); err != nil {
			t.Fatal(err)
		}
		c.calls = append(c.calls, ToolCallRows(live, turn)...)
		check("tool calls", turn)
	}
	checkRows(t, live, c)
}

// checkRows checks rows against the record's rules and against the episodes.
func checkRows(t *testing.T, live []*Episode, c committed) {
	t.Helper()
	errs := []error{}
	for _, r := range c.turns {
		errs = append(errs, r.Validate())
	}
	for _, r := range c.calls {
		errs = append(errs, r.Validate())
	}
	for _, e := range live {
		row := TrajectoryRow(e)
		errs = append(errs, row.Validate())
		tokens, mask := e.Sequence()
		if int(row.Tokens) != len(tokens) || len(mask) != len(tokens) {
			t.Errorf("%s has %d tokens, %d in its sequence", row.TrajectoryID, row.Tokens, len(tokens))
		}
		ones := 0
		for _, m := range mask {
			ones += int(m)
		}
		if ones != int(row.ResponseTokens) {
			t.Errorf("%s: %d response tokens, %d loss tokens", row.TrajectoryID, row.ResponseTokens, ones)
		}
	}
	if err := errors.Join(errs...); err != nil {
		t.Error(err)
	}
	if len(c.turns) <= len(live) || len(c.calls) == 0 {
		t.Errorf("only %d turns and %d calls were tested", len(c.turns), len(c.calls))
	}
}

func TestEpisodesRefuseRowsThatDoNotFit(t *testing.T) {
	l := newLoop(t, settings, 11)
	c := committed{prompts: prompts(l, 12)}
	live := c.rebuild(t, l, 4)
	for turn := range 2 {
		if err := l.advance(t.Context(), &babbler{tok: l.tok}, callsOf(new(python)), "v", live); err != nil {
			t.Fatal(err)
		}
		c.turns, c.calls = append(c.turns, TurnRows(live, turn)...), append(c.calls, ToolCallRows(live, turn)...)
	}
	c.rebuild(t, l, 4)
	second := slices.IndexFunc(c.turns, func(r schema.TurnRow) bool { return r.Turn == 1 })
	first := slices.IndexFunc(c.turns,
		func(r schema.TurnRow) bool { return r.TrajectoryID == c.turns[second].TrajectoryID })
	several := slices.IndexFunc(c.calls, func(r schema.ToolCallRow) bool { return r.Call == 1 })
	for name, change := range map[string]func(*committed){
		"two prompts of a group": func(c *committed) { c.prompts = append(c.prompts, c.prompts[0]) },
		"bad group id":           func(c *committed) { c.prompts[0].GroupID = "x" },
		"missing prompt":         func(c *committed) { c.prompts = c.prompts[1:] },
		"doubled turn":           func(c *committed) { c.turns = append(c.turns, c.turns[0]) },
		"missing first turn":     func(c *committed) { c.turns = slices.Delete(c.turns, first, first+1) },
		"another context": func(c *committed) {
			c.turns[second].TokenIDs = append([]int32{65},
				c.turns[second].TokenIDs[1:]...)
		},
		"no log-probabilities": func(c *committed) { c.turns[0].LogProbs = nil },
		"no response":          func(c *committed) { c.turns[0].ContextTokens = int32(len(c.turns[0].TokenIDs)) },
		"unknown token": func(c *committed) {
			c.turns[0].TokenIDs = slices.Concat(c.turns[0].TokenIDs[:len(c.turns[0].TokenIDs)-1], []int32{99999})
		},
		"missing calls of a turn": func(c *committed) {
			c.calls = slices.DeleteFunc(c.calls,
				func(r schema.ToolCallRow) bool { return r.TrajectoryID == c.turns[second].TrajectoryID })
		},
		"one call missing":      func(c *committed) { c.calls = slices.Delete(c.calls, several, several+1) },
		"call of no episode":    func(c *committed) { c.calls[0].TrajectoryID = "00009/0000/000"; c.calls[0].Call = 0 },
		"another tool response": func(c *committed) { changeBody(c, c.turns[second].TrajectoryID) },
	} {
		broken := committed{slices.Clone(c.prompts), slices.Clone(c.turns), slices.Clone(c.calls)}
		change(&broken)
		rows := Rows{Turns: broken.turns, Calls: broken.calls}
		if _, err := l.Episodes(t.Context(), broken.prompts, 4, rows); err == nil {
			t.Errorf("%s: rebuilt", name)
		}
	}
}

func changeBody(c *committed, trajectory string) {
	for i := range c.calls {
		if c.calls[i].TrajectoryID == trajectory {
			c.calls[i].Response += "1"
			return
		}
	}
}
