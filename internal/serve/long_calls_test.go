package serve

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/jinja"
	"github.com/ropewalk/ropewalk/rollout/toolcall"
)

// TestLongCallsArePutTogetherOnce streams calls and white space of megabytes in small pieces.
func TestLongCallsArePutTogetherOnce(t *testing.T) {
	const pieces = 1 << 19
	const call0 = `<tool_call>{"name": "f", "arguments": {"a": "`
	for begin, piece := range map[string]string{call0: "abcd", "": " \n ",
		"x": " \n "} {
		for _, stream := range []bool{false, true} {
			c := newFinder(toolcall.All[0], nil, false, stream)
			var text strings.Builder
			push := func(piece string) {
				passed, _ := c.push(piece)
				text.WriteString(passed)
			}
			push(begin)
			for range pieces {
				push(piece)
			}
			push("end")
			rest, calls := c.end(false)
			require.Empty(t, calls)
			if !stream || begin != call0 {
				require.Equal(t, begin+strings.Repeat(piece, pieces)+"end", text.String()+rest)
			}
		}
	}
	c := newFinder(toolcall.All[0], nil, false, false)
	passed, _ := c.push(" a \n")
	more, _ := c.push("\n<tool")
	require.Equal(t, " a", passed+more)
	passed, _ = c.push(`_call>{"name": "f", "arg`)
	more, _ = c.push(`uments": {}}</tool_call> b`)
	require.Empty(t, passed+more)
	rest, calls := c.end(true)
	require.Equal(t, "b", rest)
	require.Equal(t, []call{{0, "f", "{}"}}, calls)
}

// TestNestedArguments reads arguments of 3 MB of brackets, which stay a text as other arguments that are no object do.
func TestNestedArguments(t *testing.T) {
	deep := `{"a": ` + strings.Repeat("[", 1_500_000) + strings.Repeat("]", 1_500_000) + "}"
	raw, err := json.Marshal(map[string]any{"role": "assistant", "tool_calls": []any{map[string]any{
		"function": map[string]any{"name": "f", "arguments": deep}}}})
	require.NoError(t, err)
	m, fault := (&chat{}).message("messages[0]", raw)
	require.Nil(t, fault)
	calls, _ := m.Get("tool_calls")
	function, _ := calls.([]any)[0].(*jinja.Dict).Get("function")
	arguments, _ := function.(*jinja.Dict).Get("arguments")
	require.Equal(t, deep, arguments)
}
