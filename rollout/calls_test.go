package rollout

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/rollout/protocol"
	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/ropewalk/ropewalk/tool"
	"github.com/ropewalk/ropewalk/tool/tools"
)

// doubler is a second tool.
type doubler struct{}

type number struct {
	N int `json:"n" doc:"the number"`
}

func (doubler) Spec() tool.Spec {
	return tool.Spec{Name: "double", Doc: "doubles a number", Schema: tool.SchemaOf[number](), Repeat: tool.Pure}
}

func (doubler) Run(ctx context.Context, calls []tool.Call) ([]tool.Result, error) {
	return tool.Each(ctx, calls, func(_ context.Context, c tool.Call, given number) (tool.Result, error) {
		if given.N == 0 {
			return tool.Result{}, errBroken
		}
		return tool.Result{Status: tool.OK, Stdout: fmt.Sprint(2 * given.N)}, nil
	})
}

func block(name, arguments string) string {
	return fmt.Sprintf(`<tool_call>{"name": %q, "arguments": %s}</tool_call>`, name, arguments)
}

// twoTools returns a loop whose policy calls python and double, and an episode of it with one response.
func twoTools(t *testing.T, specs []tool.Spec, blocks ...string) (*Loop, *Episode) {
	l := newLoop(t, Settings{MaxTurns: 3, MaxTurnTokens: 900, MaxTokens: 4000, Tools: specs}, 1)
	e := start(l)
	text := "</reason>"
	for _, b := range blocks {
		text += b
	}
	feed(t, l, e, text+protocol.EndOfTurn, policy.FinishStop)
	return l, e
}

var both = tool.Toolbox{tools.NewPython(new(python), sandbox.Limits{}), doubler{}}

// The calls of one turn go to several tools, and their results come back in the order of the calls. Bad arguments and
// unknown tools have the verdicts and texts of the protocol.
func TestATurnThatCallsSeveralTools(t *testing.T) {
	l, e := twoTools(t, both.Specs(), block("double", `{"n": 21}`), protocol.Call("print(12+3)", ""),
		block("double", `{"n": "x"}`), block("triple", `{"n": 1}`), block("python", `{"code": "7*6"}`),
		block("double", `{"n": 4}`))
	calls, _ := l.PendingCalls([]*Episode{e}, tool.Scope{Run: "r", Generation: 2})
	require.Len(t, calls, 5, "a call of an unknown tool does not run")
	require.Equal(t, tool.Key{Scope: tool.Scope{Run: "r", Generation: 2}, Label: LabelSample, Step: 1, Group: 2,
		Sample: 3, Call: 4}, calls[3].Key)
	require.Equal(t, []string{"python", protocol.ToolName}, []string{calls[1].Tool, calls[1].Name})
	require.NoError(t, NewTools(both, tool.Scope{}).answer(t.Context(), l, []*Episode{e}))
	var got [][2]string
	for _, r := range e.Turns[0].Results {
		got = append(got, [2]string{r.Status, r.Body})
	}
	require.Equal(t, [][2]string{
		{"ok", "Tool call success\nstdout: 42"},
		{"ok", "Tool call success\nstdout: 15"},
		{"bad_arguments", "Error when executing tool: n is missing or not a whole number"},
		{"unknown_tool", `Error when executing tool: unknown tool "triple"`},
		{"ok", "Tool call success\nstdout: 42"},
		{"ok", "Tool call success\nstdout: 8"},
	}, got)
	rows := ToolCallRows([]*Episode{e}, 0)
	require.Equal(t, []string{"double", `{"n": 21}`, "", "42"}, []string{rows[0].Name, rows[0].Arguments, rows[0].Code,
		rows[0].Stdout})
	require.Equal(t, []string{"python", "7*6", "42"}, []string{rows[4].Name, rows[4].Code, rows[4].Value})
	require.Equal(t, Counts{ToolCalls: 6, ToolErrors: 2, ResponseTokens: len(e.Turns[0].Response)}, e.Counts())
	require.EqualValues(t, 5, *TurnRows([]*Episode{e}, 0)[0].ParsedCalls)

	rebuilt := start(l)
	_, err := l.Advance(t.Context(), []*Episode{rebuilt}, Rows{Turns: TurnRows([]*Episode{e}, 0), Calls: rows})
	require.NoError(t, err)
	require.Equal(t, e, rebuilt)
}

// A call that the limit of tokens cut off is counted apart from the closed ones.
func TestACallThatIsNotClosedIsCounted(t *testing.T) {
	l := newLoop(t, Settings{MaxTurns: 3, MaxTurnTokens: 900, MaxTokens: 4000}, 1)
	e := start(l)
	feed(t, l, e, "</reason>"+protocol.Call("1", "")+protocol.Call("2", "")+`<tool_call>{"name": "py`,
		policy.FinishLength)
	row := TrajectoryRow(e)
	require.NoError(t, row.Validate())
	require.EqualValues(t, 2, *row.BegunCalls)
	require.EqualValues(t, 1, *row.OpenCalls)
}

// Without tools in the settings the policy can call python alone, and without python in them it cannot call python.
func TestOnlyTheRecipesToolsCanBeCalled(t *testing.T) {
	_, e := twoTools(t, nil, block("double", `{"n": 21}`), protocol.Call("1", ""))
	require.Equal(t, `unknown tool "double"`, e.Turns[0].Parsed.Calls[0].Message)
	require.Empty(t, e.Turns[0].Parsed.Calls[1].Error)
	l, e := twoTools(t, tool.Toolbox{doubler{}}.Specs(), block("double", `{"n": 21}`), protocol.Call("1", ""))
	require.NoError(t, NewTools(tool.Toolbox{doubler{}}, tool.Scope{}).answer(t.Context(), l, []*Episode{e}))
	require.Equal(t, "42", e.Turns[0].Results[0].Stdout)
	require.Equal(t, "unknown_tool", e.Turns[0].Results[1].Status)
	require.Equal(t, `Error when executing tool: unknown tool "`+protocol.ToolName+`"`, e.Turns[0].Results[1].Body)
}

// The reason of an exclusion names the tool that broke.
func TestATrajectoryThatAToolBrokeOn(t *testing.T) {
	l, e := twoTools(t, both.Specs(), block("double", `{"n": 0}`), protocol.Call("print(1+2)", ""))
	outcomes, refs, err := l.RunCalls(t.Context(), both, tool.Scope{}, []*Episode{e}, nil)
	require.NoError(t, err)
	require.Equal(t, []CallRef{{0, 0, 0}, {0, 0, 1}}, refs)
	require.NoError(t, l.AbsorbOutcomes([]*Episode{e}, outcomes))
	require.Equal(t, "tool double: sandbox broken", e.Excluded)
	require.ErrorIs(t, NewTools(both, tool.Scope{}).answer(t.Context(), l, []*Episode{func() *Episode {
		_, again := twoTools(t, both.Specs(), block("double", `{"n": 0}`))
		return again
	}()}), errBroken, "an evaluation excludes nothing")
}
