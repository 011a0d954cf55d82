package protocol_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/internal/testing/protocoltest"
	"github.com/ropewalk/ropewalk/rollout/protocol"
)

func FuzzPRS(f *testing.F) { protocoltest.Fuzz(f, protocol.PRS) }

// The instruction is that of the paper's appendix, and the tool is called by a tag of its name.
func TestPRSExchange(t *testing.T) {
	wiki := lookup
	wiki.Name = "wiki_search"
	tools := []protocol.Tool{wiki, protocol.Python}
	require.Equal(t, "<|im_start|>user\nAnswer the given question. You must conduct reasoning inside <reasoning> and "+
		"</reasoning> first every time you get new information. After reasoning, if you find you lack some knowledge, "+
		"you can call wiki_search, and it will return the top searched results. You can search as many times as you "+
		"want. If you find no further external knowledge needed, you can directly provide the answer inside <answer> "+
		"and </answer> without detailed illustrations. For example, <answer> xxx </answer>.\n"+
		"<wiki_search> … </wiki_search>: Finds pages.\nQuestion: Who?<|im_end|>\n<|im_start|>assistant\n",
		protocol.PRS.Context(protocol.View{Task: "Who?", Tools: tools}))
	response, ok := protocol.PRS.Write(env.Move{Thought: "I look.", Tool: "wiki_search", Arguments: `{"query": "who"}`})
	require.True(t, ok)
	require.Equal(t, "<reasoning>I look.</reasoning><wiki_search>who</wiki_search>", response)
	got := protocol.PRS.Parse(response, tools)
	require.Equal(t, protocol.Parsed{Reasoning: "I look.", WellFormed: true,
		Calls: []env.ToolCall{{Name: "wiki_search", Arguments: `{"query": "who"}`}}}, got)
	require.Equal(t, "\n<result>Ada</result>\n", protocol.PRS.Context(protocol.View{Turn: 1, Rounds: []protocol.Round{
		{Response: response, Calls: got.Calls, Bodies: []string{"Ada"}}}}))
	answered := protocol.PRS.Parse("<reasoning>Ada.</reasoning><answer>Ada</answer><|im_end|>", tools)
	require.Equal(t, protocol.Parsed{Reasoning: "Ada.", Answer: "Ada", HasAnswer: true, AnswerTags: 1,
		WellFormed: true}, answered)
}
