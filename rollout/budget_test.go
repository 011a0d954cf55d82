package rollout

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/env/calc"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/rollout/protocol"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/tool"
)

// several returns a response of a protocol with up to n calls.
func several(t *testing.T, p protocol.Protocol, n int) string {
	t.Helper()
	text := ""
	for range n {
		one, ok := p.Write(env.Move{Code: "print(12+3)"})
		if !ok {
			one, ok = p.Write(env.Move{Tool: "search", Arguments: `{"query": "x"}`})
		}
		require.True(t, ok, p.Spec().Name)
		text += strings.TrimSuffix(one, p.Spec().EndOfTurn)
	}
	return text + p.Spec().EndOfTurn
}

// calling lists the protocols with tools, with a loop of python and generous limits.
func calling(t *testing.T, budgets Budgets, each func(t *testing.T, p protocol.Protocol, l *Loop)) {
	t.Helper()
	n := 0
	for _, p := range protocol.All {
		if !p.Spec().Tools {
			continue
		}
		n++
		t.Run(p.Spec().Name, func(t *testing.T) {
			tok, err := TokenizerOf(p, calc.Declaration)
			require.NoError(t, err)
			l, err := NewLoop(Settings{MaxTurns: 12, MaxTurnTokens: 4096, MaxTokens: 65536, MaxToolTextBytes: 200,
				Budgets: budgets, Protocol: p, Temperature: 1}, tok, 1)
			require.NoError(t, err)
			each(t, p, l)
		})
	}
	require.Greater(t, n, 4)
}

// answerAll writes a response and answers its calls with a text.
func answerAll(t *testing.T, l *Loop, e *Episode, response, text string) []CallResult {
	t.Helper()
	require.True(t, e.AwaitsResponse())
	turn := l.scripted(response)
	turn.LogProbs, turn.Entropies = make([]float32, len(turn.Response)), make([]float32, len(turn.Response))
	turn.Finish = policy.FinishStop
	l.absorb(t.Context(), e, turn)
	calls, _ := l.PendingCalls([]*Episode{e}, tool.Scope{})
	outcomes := make([]tool.Outcome, len(calls))
	for i := range outcomes {
		outcomes[i].Result = tool.Result{Status: tool.OK, Stdout: text}
	}
	require.NoError(t, l.AbsorbOutcomes([]*Episode{e}, outcomes))
	return e.Turns[len(e.Turns)-1].Results
}

// rebuilt checks that the rows of an episode rebuild it, verdicts on refused calls included.
func rebuilt(t *testing.T, l *Loop, e *Episode) {
	t.Helper()
	var rows Rows
	for turn := range e.Turns {
		rows.Turns = append(rows.Turns, TurnRows([]*Episode{e}, turn)...)
		rows.Calls = append(rows.Calls, ToolCallRows([]*Episode{e}, turn)...)
	}
	prompt, err := l.PromptRow(context.Background(), e.Step, e.Group, e.Task)
	require.NoError(t, err)
	again, err := l.Episodes(t.Context(), []schema.PromptRow{prompt}, 1, rows)
	require.NoError(t, err)
	require.Equal(t, e.Prefix(), again[0].Prefix())
	for i := range e.Turns {
		require.Equal(t, e.Turns[i].Results, again[0].Turns[i].Results)
	}
}

// The calls of a response beyond the budget of a turn are refused, in every protocol that can write several.
func TestCallsBeyondTheBudgetOfATurn(t *testing.T) {
	manifold := 0
	calling(t, Budgets{TurnCalls: 2}, func(t *testing.T, p protocol.Protocol, l *Loop) {
		e := l.Start(Identity{Label: LabelSample, Step: 1}, env.Task{Text: "Q"})
		results := answerAll(t, l, e, several(t, p, 4), "15")
		if len(results) > 2 {
			manifold++
		}
		for i, r := range results {
			if i < 2 {
				require.Equal(t, "ok", r.Status)
				continue
			}
			require.Equal(t, string(env.CallOverBudget), r.Status)
			require.Contains(t, r.Body, "a response can run 2 calls")
			require.Contains(t, e.Observation, r.Body)
			require.True(t, r.Failed())
		}
		row := e.turnRow(0)
		require.Equal(t, row.ToolCalls, *row.ParsedCalls, "a refused call could be parsed")
		rebuilt(t, l, e)
	})
	require.GreaterOrEqual(t, manifold, 2, "rstar2 and hermes write several calls")
}

// The budget of an episode counts the calls of all of its turns.
func TestCallsBeyondTheBudgetOfAnEpisode(t *testing.T) {
	calling(t, Budgets{Calls: 3}, func(t *testing.T, p protocol.Protocol, l *Loop) {
		e := l.Start(Identity{Label: LabelSample, Step: 1}, env.Task{Text: "Q"})
		ok, refused := 0, 0
		for range 5 {
			for _, r := range answerAll(t, l, e, several(t, p, 2), "15") {
				switch r.Status {
				case "ok":
					ok++
					require.Zero(t, refused, "a call ran after one was refused")
				case string(env.CallOverBudget):
					refused++
					require.Contains(t, r.Body, "the limit of 3 calls is reached")
				}
			}
		}
		require.Equal(t, 3, ok)
		require.Positive(t, refused)
		require.Equal(t, "", string(e.Finish), "the policy can still answer")
		counts := e.Counts()
		require.Equal(t, ok+refused, counts.ToolCalls)
		require.Equal(t, refused, counts.ToolErrors)
		rebuilt(t, l, e)
	})
}

// The text of tools in an episode stays within its budget, and the policy reads why the rest is missing.
func TestBudgetOfToolText(t *testing.T) {
	calling(t, Budgets{ToolTextBytes: 300}, func(t *testing.T, p protocol.Protocol, l *Loop) {
		e := l.Start(Identity{Label: LabelSample, Step: 1}, env.Task{Text: "Q"})
		shown, hidden := 0, 0
		for range 6 {
			for _, r := range answerAll(t, l, e, several(t, p, 2), strings.Repeat("z", 500)) {
				shown += strings.Count(r.Body, "z")
				if strings.Contains(r.Body, usedUp) {
					hidden++
					require.Less(t, len(r.Body), len(usedUp)+60)
				}
				require.Equal(t, strings.Repeat("z", 500), r.Stdout, "the record keeps the whole text")
			}
		}
		require.LessOrEqual(t, shown, 300)
		require.GreaterOrEqual(t, shown, 200, "the first response alone may have 200")
		require.Positive(t, hidden)
		rebuilt(t, l, e)
	})
}

func TestNegativeBudgets(t *testing.T) {
	s := settings
	s.Budgets.TurnCalls = -1
	require.ErrorContains(t, s.Validate(), "-1 calls in a turn")
}
