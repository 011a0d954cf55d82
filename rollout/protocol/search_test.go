package protocol_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/internal/testing/protocoltest"
	"github.com/ropewalk/ropewalk/rollout/protocol"
)

func FuzzSearch(f *testing.F) { protocoltest.Fuzz(f, protocol.Search) }

func TestSearchContexts(t *testing.T) {
	first := protocol.Search.Context(protocol.View{Task: "Who?", Tools: []protocol.Tool{lookup}})
	require.Contains(t, first, "<|im_start|>user\nAnswer the given question. Reason inside <think> and </think> first")
	require.Contains(t, first,
		"\n<search> … </search>: Finds pages.\nQuestion: Who?<|im_end|>\n<|im_start|>assistant\n")
	after := func(response string, bodies ...string) string {
		return protocol.Search.Context(protocol.View{Turn: 1,
			Rounds: []protocol.Round{{Response: response, Bodies: bodies}}})
	}
	require.Equal(t, "\n<information>a page</information>\n", after("<search>Paris</search>", "a page"))
	require.Equal(t, "\n<|im_start|>user\n<information>a page</information>\n<information>two</information>"+
		"<|im_end|>\n<|im_start|>assistant\n", after("<search>Paris<|im_end|>", "a page", "two"))
}

func TestSearchParses(t *testing.T) {
	wanted := []env.ToolCall{{Name: "search", Arguments: `{"query": "capital of France"}`}}
	for text, want := range map[string]protocol.Parsed{
		"<think>hm</think>\n<search> capital of France </search>": {Reasoning: "hm", Calls: wanted, WellFormed: true},
		"<search>capital of France</search>":                      {Calls: wanted, WellFormed: true},
		"well, <search>capital of France</search>":                {Calls: wanted},
		"<search>capital of France</search> done<|im_end|>":       {Calls: wanted},
		"<search>capital of France":                               {OpenCalls: 1}, // cut off
		"<think>I could <search>":                                 {},             // in an open thought
		"<search>capital<|im_end|>": {Calls: []env.ToolCall{{Arguments: "capital", Error: env.CallDecodeError,
			Message: "the call is not closed"}}},
		"<search> </search>": {Calls: []env.ToolCall{{Name: "search", Arguments: `{"query": ""}`,
			Error: env.CallBadArgument, Message: "the call is empty"}}, WellFormed: true},
		"<think>a</think><answer> Paris </answer><|im_end|>": {Reasoning: "a", Answer: "Paris", HasAnswer: true,
			AnswerTags: 1, WellFormed: true},
		"<answer>Paris</answer><answer>Rome</answer><|im_end|>": {Answer: "Rome", HasAnswer: true, AnswerTags: 2},
		"<answer>Paris</answer>":                                {Answer: "Paris", HasAnswer: true, AnswerTags: 1},
		"<think><search>x</search></think><|im_end|>":           {Reasoning: "<search>x</search>"},
		"<think>a</think><|im_end|>":                            {Reasoning: "a"},
	} {
		require.Equal(t, want, protocol.Search.Parse(text, []protocol.Tool{lookup}), "%q", text)
	}
}

// The one tag calls the one tool there is, such as Python in arithmetic.
func TestSearchCallsTheOnlyTool(t *testing.T) {
	got := protocol.Search.Parse("<search>print(1)</search>", nil)
	require.Equal(t, []env.ToolCall{{Name: "python", Arguments: `{"code": "print(1)"}`, Code: "print(1)"}}, got.Calls)
	two := []protocol.Tool{protocol.Python, {Name: "browse"}}
	require.Equal(t, env.CallUnknownTool, protocol.Search.Parse("<search>x</search>", two).Calls[0].Error)
	got = protocol.Search.Parse("<search>x</search>", []protocol.Tool{{Name: "now"}})
	require.Equal(t, env.CallBadArgument, got.Calls[0].Error, "the tool takes no text")
}
