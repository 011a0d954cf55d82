package reward

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAsk(t *testing.T) {
	long := strings.Repeat("x", maxSymbolicBytes+1)
	for name, c := range map[string]struct {
		answer, gold string
		options      Options
		asked        bool
	}{
		"expressions":                {"x+1", "1+x", Options{}, true},
		"an expression for a number": {`2\cdot 3 + 1`, "7", Options{}, true},
		"a number for an expression": {"2", `\sin(x)^2 + 1`, Options{}, true},
		"lists":                      {"(x+1, 2)", "(1+x, 2)", Options{}, true},
		"words":                      {"north", "south", Options{}, true},
		"agreement":                  {"x+1", "x + 1", Options{}, false},
		"two values":                 {"3", "4", Options{}, false},
		"two roots":                  {`\sqrt{2}`, `\sqrt{3}`, Options{}, false},
		"no answer":                  {"  ", "1+x", Options{}, false},
		"no gold":                    {"x+1", "", Options{}, false},
		"literal gold":               {`2\cdot 3 + 1`, "7", Options{Literal: true}, false},
		"literal, not a number":      {"x+1", "1+x", Options{Literal: true}, true},
		"long answer":                {long, "1+x", Options{}, false},
		"long gold":                  {"x+1", long, Options{}, false},
	} {
		q, asked := Ask(" "+c.answer+" ", c.gold, c.options)
		require.Equal(t, c.asked, asked, name)
		if asked {
			require.Equal(t, Question{strings.TrimSpace(c.answer), c.gold}, q, name)
		} else {
			require.Zero(t, q, name)
		}
	}
}

func TestSettled(t *testing.T) {
	wrong := Outcome{Verdict: Wrong, Answer: "x+1"}
	require.Equal(t, Outcome{Reward: 1, Verdict: Symbolic, Answer: "x+1"}, wrong.Settled(true))
	require.Equal(t, wrong, wrong.Settled(false))
	require.Equal(
		t, Outcome{Verdict: NoBox}, Outcome{Verdict: NoBox}.Settled(true), "what has no answer has nothing to agree",
	)
	exact := Outcome{Reward: 1, Verdict: Exact}
	require.Equal(t, exact, exact.Settled(false))
	require.True(t, Symbolic.Correct())
}
