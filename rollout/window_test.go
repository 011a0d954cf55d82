package rollout

import (
	"slices"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/rollout/protocol"
	"github.com/ropewalk/ropewalk/schema"
)

func TestWindowAfter(t *testing.T) {
	past := []Span{{3, 5}, {7, 9}, {10, 14}} // the first turn has a task of three tokens
	for _, c := range []struct {
		turns, history int
		want           Window
	}{
		{0, 1, Window{}}, {1, 1, Window{}}, {3, 0, Window{}}, {3, 3, Window{}}, {3, 9, Window{}},
		{2, 1, Window{3, 4}}, {3, 1, Window{3, 8}}, {3, 2, Window{3, 4}},
	} {
		if got := WindowAfter(3, past[:c.turns], History{Turns: c.history}); got != c.want {
			t.Errorf("after %d turns with a history of %d: %+v, want %+v", c.turns, c.history, got, c.want)
		}
	}
	w := Window{3, 4}
	if got := w.Tokens([]int32{0, 1, 2, 3, 4, 5, 6}, 6); !slices.Equal(got, []int32{0, 1, 2, 4, 5}) || w.Len(6) != 5 {
		t.Errorf("tokens %v of %d", got, w.Len(6))
	}
}

// With a bound in tokens, the oldest turns leave, each as a whole, until the task and the rest fit; the task stays.
func TestWindowInTokens(t *testing.T) {
	const head = 3
	past := []Span{{3, 5}, {6, 9}, {12, 14}, {14, 15}, {30, 40}, {40, 41}}
	for turns := 1; turns <= len(past); turns++ {
		last := past[turns-1].End
		for tokens := 1; tokens <= last+1; tokens++ {
			h := History{Tokens: tokens}
			w, left := WindowAfter(head, past[:turns], h), h.LeftOut(head, past[:turns])
			if got := w.Len(last); got > tokens && left < turns {
				t.Errorf("%d turns in %d tokens: the window has %d", turns, tokens, got)
			}
			if w != leavingOut(left, head, past) || (w == Window{}) != (last <= tokens) {
				t.Errorf("%d turns in %d tokens: %+v leaves %d turns out", turns, tokens, w, left)
			}
			if left > 0 && leavingOut(left-1, head, past).Len(last) <= tokens {
				t.Errorf("%d turns in %d tokens: %d turns left, and one fewer would do", turns, tokens, left)
			}
			if left > 0 && w.Head != head {
				t.Errorf("%d turns in %d tokens: the task is cut to %d", turns, tokens, w.Head)
			}
		}
	}
}

// Over a whole episode, the prompt is what the rows of its turns are cut to, whatever the limits are.
func TestPromptsAreTheWindowsOfTheirRows(t *testing.T) {
	for _, h := range []History{{}, {Turns: 1}, {Turns: 2}, {Tokens: 1}, {Tokens: 30}, {Tokens: 50}, {Tokens: 80},
		{Turns: 2, Tokens: 60}} {
		s := settings
		s.MaxTurns, s.MaxTurnTokens, s.MaxTokens, s.History = 6, 200, 1000, h
		l := newLoop(t, s, 1)
		e := start(l)
		var prefixes [][]int32
		for turn := range s.MaxTurns {
			prefixes = append(prefixes, e.Prefix())
			feed(t, l, e, protocol.CallResponse("print("+strings.Repeat("7", 1+5*(turn%3))+")"), policy.FinishStop)
			runCalls(t, l, e)
		}
		if e.Finish != FinishMaxTurns {
			t.Fatalf("%+v: finish %q", h, e.Finish)
		}
		tokens, _ := e.Sequence()
		head, end, past := len(e.Turns[0].Context), 0, []Span{}
		for k, turn := range e.Turns {
			begin := end + len(turn.Context)
			if got := WindowAfter(head, past, h).Tokens(tokens, begin); !slices.Equal(got, prefixes[k]) {
				t.Errorf("%+v, turn %d: the row begins with %q, and the prompt was %q", h, k, l.tok.Decode(got),
					l.tok.Decode(prefixes[k]))
			}
			end = begin + len(turn.Response)
			past = append(past, Span{begin, end})
		}
	}
}

// A prompt holds the task, an empty turn in place of the turns left out, and the latest turns. The rows that an episode
// is rebuilt from do not depend on the window. The token budget applies to the prompt.
func TestHistory(t *testing.T) {
	s := settings
	s.MaxTurns, s.History, s.MaxTokens = 4, History{Turns: 1}, 50
	l := newLoop(t, s, 1)
	e := start(l)
	task := e.Context
	call := protocol.CallResponse("print(12+3)")
	var prefixes [][]int32
	for range 4 {
		prefixes = append(prefixes, e.Prefix())
		feed(t, l, e, call, policy.FinishStop)
		runCalls(t, l, e)
	}
	if e.Finish != FinishMaxTurns || len(e.Turns) != 4 {
		t.Fatalf("%d turns, finish %q", len(e.Turns), e.Finish)
	}
	for turn, got := range prefixes {
		want := slices.Clone(task)
		first := max(0, turn-1)
		if first > 0 {
			want = append(want, l.stops[0])
		}
		for k := first; k < turn; k++ {
			if k > 0 {
				want = append(want, e.Turns[k].Context...)
			}
			want = append(want, e.Turns[k].Response...)
		}
		if turn > 0 {
			want = append(want, e.Turns[turn].Context...)
		}
		if !slices.Equal(got, want) {
			t.Errorf("turn %d: %q, want %q", turn, l.tok.Decode(got), l.tok.Decode(want))
		}
	}
	if e.Tokens() <= s.MaxTokens {
		t.Errorf("the trajectory has %d tokens: the budget of %d is a turn's", e.Tokens(), s.MaxTokens)
	}
	rows := []schema.TurnRow{e.turnRow(2), e.turnRow(3)}
	if rows[0].AnchorHash != rows[1].AnchorHash {
		t.Error("turns that see the same tokens have other anchors")
	}
	whole := newLoop(t, settings, 1)
	plain := start(whole)
	feed(t, whole, plain, call, policy.FinishStop)
	if plain.turnRow(0).AnchorHash != e.turnRow(0).AnchorHash || rows[0].AnchorHash == e.turnRow(1).AnchorHash {
		t.Error("the anchor is not what the policy saw")
	}
}
