package serve

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
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
