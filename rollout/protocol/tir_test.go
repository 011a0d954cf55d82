package protocol_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/internal/testing/protocoltest"
	"github.com/ropewalk/ropewalk/rollout/protocol"
)

func FuzzTIR(f *testing.F) { protocoltest.Fuzz(f, protocol.TIR{}) }

func TestTIRContexts(t *testing.T) {
	p := protocol.TIR{}
	require.Equal(t, "<|im_start|>system\nPlease integrate natural language reasoning with programs to solve the "+
		"problem, and put your final answer within \\boxed{}. Write a program in a python block and open an "+
		"output block to run it.<|im_end|>\n<|im_start|>user\nWhat is 1+1?<|im_end|>\n<|im_start|>assistant\n",
		p.Context(protocol.View{Task: "What is 1+1?"}))
	after := func(response string) string {
		return p.Context(protocol.View{Turn: 1, Rounds: []protocol.Round{{Response: response, Bodies: []string{"2"}}}})
	}
	require.Equal(t, "\n2\n```\n", after("```python\nprint(1+1)\n```\n```output"), "the same turn goes on")
	require.Equal(t, "\n<|im_start|>user\n```output\n2\n```<|im_end|>\n<|im_start|>assistant\n",
		after("```python\nprint(1+1)\n```<|im_end|>"), "the response has ended the turn")
}

func TestTIRParses(t *testing.T) {
	const program = "```python\nprint(1+1)\n```"
	ran := []env.ToolCall{{Name: "python", Arguments: `{"code": "print(1+1)"}`, Code: "print(1+1)"}}
	unclosed := func(text string) []env.ToolCall {
		return []env.ToolCall{{Arguments: text, Error: env.CallDecodeError, Message: "the call is not closed"}}
	}
	for text, want := range map[string]protocol.Parsed{
		"I add.\n" + program + "\n```output":     {Reasoning: "I add.\n", Calls: ran, WellFormed: true},
		"```py\nprint(1+1)\n```\n```output":      {Calls: ran, WellFormed: true},
		program + "\n" + program + "\n```output": {Calls: ran}, // two programs, one output
		program + "<|im_end|>":                   {Calls: ran}, // another form, which runs too
		program:                                  {},           // cut off
		"I add.\n```python\nprint(":              {Reasoning: "I add.\n", OpenCalls: 1},
		program + " and then\n```output":         {Calls: unclosed(program + " and then\n")},
		"```python\nprint(\n```output":           {Calls: unclosed("```python\nprint(\n")},
		"```python\nprint(<|im_end|>":            {Calls: unclosed("```python\nprint(")},
		"```output":                              {Calls: unclosed("")},
		"```python\n\n```\n```output": {Calls: []env.ToolCall{{Name: "python", Arguments: `{"code": ""}`,
			Error: env.CallBadArgument, Message: "the call is empty"}}, WellFormed: true},
		`It is \boxed{2}.<|im_end|>`: {Reasoning: "It is ", Answer: "2", HasAnswer: true,
			AnswerTags: 1, WellFormed: true},
		"```python\nprint('\\boxed{3}')\n```\n\\boxed{2}<|im_end|>": {Answer: "2", HasAnswer: true, AnswerTags: 1},
		"```python\nprint('\\boxed{3}')\n```<|im_end|>": {Calls: []env.ToolCall{{Name: "python",
			Arguments: `{"code": "print('\\boxed{3}')"}`, Code: `print('\boxed{3}')`}}},
		"nothing<|im_end|>": {Reasoning: "nothing"},
	} {
		require.Equal(t, want, protocol.TIR{}.Parse(text, nil), "%q", text)
	}
	got := protocol.TIR{}.Parse(program+"\n```output", []protocol.Tool{lookup})
	require.Equal(t, env.CallUnknownTool, got.Calls[0].Error, "the episode has no Python")
}

func TestTIROutputStaysInItsBlock(t *testing.T) {
	body := protocol.TIR{}.Body(protocol.Limit{}, env.ToolCall{Code: "x"},
		&protocol.Result{Output: "```\n\\boxed{3} `````"})
	require.Equal(t, "` ``\n\\ boxed{3} ` ` ` ``", body)
}

// TestLongTIR parses megabytes of blocks, and of what is nearly one: each is read once.
func TestLongTIR(t *testing.T) {
	const n = 1 << 19
	for text, want := range map[string]int{"```py\n```": 1, "```python\nx\n```": 1, "```pyx": 0, "```py": 0,
		"\n```": 0} {
		got := protocol.TIR{}.Parse(strings.Repeat(text, n)+"\n```output", nil)
		require.Len(t, got.Calls, 1, text)
		require.False(t, got.WellFormed, text)
		got = protocol.Program{}.Parse(strings.Repeat(text, n), nil)
		require.Equal(t, n*want, got.AnswerTags, text)
	}
}
