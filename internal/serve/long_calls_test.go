package serve

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/jinja"
)

// TestLongCallsArePutTogetherOnce streams calls and white space of megabytes in small pieces.
func TestLongCallsArePutTogetherOnce(t *testing.T) {
	const pieces = 1 << 19
	for begin, piece := range map[string]string{`<tool_call>{"name": "f", "arguments": {"a": "`: "abcd", "": " \n ",
		"x": " \n "} {
		c := &callFinder{}
		text := c.push(begin)
		for range pieces {
			text += c.push(piece)
		}
		text += c.push("end")
		rest, calls := c.end()
		require.Empty(t, calls)
		require.Equal(t, begin+strings.Repeat(piece, pieces)+"end", text+rest)
	}
	c := &callFinder{}
	require.Equal(t, " a", c.push(" a \n")+c.push("\n<tool"))
	require.Empty(t, c.push(`_call>{"name": "f", "arg`))
	require.Empty(t, c.push(`uments": {}}</tool_call> b`))
	rest, calls := c.end()
	require.Equal(t, "b", rest)
	require.Equal(t, []call{{"f", "{}"}}, calls)
}

// TestNestedArguments reads arguments of 3 MB of brackets, which stay a text as other arguments that are no object do.
func TestNestedArguments(t *testing.T) {
	deep := `{"a": ` + strings.Repeat("[", 1_500_000) + strings.Repeat("]", 1_500_000) + "}"
	raw, err := json.Marshal(map[string]any{"role": "assistant", "tool_calls": []any{map[string]any{
		"function": map[string]any{"name": "f", "arguments": deep}}}})
	require.NoError(t, err)
	m, fault := (&chat{}).message(raw)
	require.Nil(t, fault)
	calls, _ := m.Get("tool_calls")
	function, _ := calls.([]any)[0].(*jinja.Dict).Get("function")
	arguments, _ := function.(*jinja.Dict).Get("arguments")
	require.Equal(t, deep, arguments)
}
