package protocol_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/rollout/protocol"
)

// drafts are what each protocol's responses say: a draft of a call and of an answer, and a call and an answer. mention
// is a tag that is only mentioned. think is the protocol's own tag for reasoning.
var drafts = []struct {
	p                                            protocol.Protocol
	think, draftCall, draftAnswer, mention, call string
	answer                                       string
}{
	{protocol.Hermes{}, "think", hermesCall("draft"), `\boxed{1}`, "<tool_call>", hermesCall("real") + end,
		`\boxed{2}` + end},
	{protocol.Chat{}, "think", hermesCall("draft"), `\boxed{1}`, "<tool_call>", hermesCall("real") + end, "2" + end},
	{protocol.TIR{}, "think", "```python\ndraft\n```\n", `\boxed{1}`, "```python\n", "```python\nreal\n```\n```output",
		`\boxed{2}` + end},
	{protocol.RStar2{}, "reason", rstar2Call("draft"), `<answer>\boxed{1}</answer>`, "<tool_call>",
		rstar2Call("real") + end, `<answer>\boxed{2}</answer>` + end},
	{protocol.Search, "think", "<search>draft</search>", "<answer>1</answer>", "<search>", "<search>real</search>",
		"<answer>2</answer>" + end},
	{protocol.PRS, "reasoning", "<wiki_search>draft</wiki_search>", "<answer>1</answer>", "<wiki_search>",
		"<wiki_search>real</wiki_search>", "<answer>2</answer>" + end},
	{protocol.AEPO, "think", "<python>draft</python>", `<answer>\boxed{1}</answer>`, "<python>",
		"<python>real</python>", `<answer>\boxed{2}</answer>` + end},
	{protocol.Boxed{}, "think", "", `\boxed{1}`, `\boxed{`, "", `\boxed{2}` + end},
	{protocol.Program{}, "think", "", "```python\n1\n```\n", "```python\n", "", "```python\n2\n```" + end},
}

const end = "<|im_end|>"

func hermesCall(code string) string {
	return "<tool_call>\n{\"name\": \"python\", \"arguments\": {\"code\": \"" + code + "\"}}\n</tool_call>"
}

func rstar2Call(code string) string { return protocol.Call(code, "") }

// In every protocol, calls and answers inside reasoning are drafts: they neither run nor count, whether the response
// opens its reasoning or the prompt has, and whatever tags it mentions.
func TestDraftsInReasoningAreNeitherCallsNorAnswers(t *testing.T) {
	for _, d := range drafts {
		name := d.p.Spec().Name
		draft := "I could write " + d.draftCall + " or " + d.draftAnswer + " or " + d.mention
		for _, reasoning := range []string{
			"<think>" + draft + "</think>\n", "<" + d.think + ">" + draft + "</" + d.think + ">\n",
			draft + "</think>\n", draft + "</" + d.think + ">", "<think>a</think><think>" + draft + "</think>",
		} {
			if !strings.HasPrefix(reasoning, "<") && strings.HasPrefix(d.mention, "```") {
				// an open block of a program holds any text, so a mention before reasoning that the prompt opened
				// begins one
				reasoning = strings.Replace(reasoning, " or "+d.mention+"<", "<", 1)
			}
			if d.call != "" {
				got := d.p.Parse(reasoning+d.call, nil)
				require.Len(t, got.Calls, 1, "%s: %q", name, reasoning)
				require.Equal(t, env.CallError(""), got.Calls[0].Error, "%s: %q", name, reasoning)
				require.Equal(t, "real", strings.TrimSpace(got.Calls[0].Code), "%s: %q", name, reasoning)
				require.Zero(t, got.AnswerTags, "%s: %q", name, reasoning)
			}
			got := d.p.Parse(reasoning+d.answer, nil)
			require.Empty(t, got.Calls, "%s: %q", name, reasoning)
			require.Zero(t, got.OpenCalls, "%s: %q", name, reasoning)
			require.True(t, got.HasAnswer, "%s: %q", name, reasoning)
			require.Equal(t, "2", got.Answer, "%s: %q", name, reasoning)
			require.Equal(t, 1, got.AnswerTags, "%s: %q", name, reasoning)
			got = d.p.Parse(reasoning+end, nil)
			require.Empty(t, got.Calls, "%s: %q", name, reasoning)
			require.False(t, got.HasAnswer, "%s: %q", name, reasoning)
		}
		got := d.p.Parse("<think>"+draft, nil) // reasoning without an end
		require.Empty(t, got.Calls, name)
		require.False(t, got.HasAnswer, name)
		require.Zero(t, got.AnswerTags+got.OpenCalls, name)
	}
	got := protocol.ThinkAction{}.Parse("<think>not <action>up</action></think><action>down</action>"+end, nil)
	require.Equal(t, "down", got.Action)
	require.False(t, got.WellFormed)
}

// Tags of reasoning inside a call or an answer are its text.
func TestReasoningTagsInCallsAreText(t *testing.T) {
	for _, code := range []string{"print('<think>')", "print('</think>')", "print('<think></think>')"} {
		for _, p := range []protocol.Protocol{protocol.Hermes{}, protocol.Chat{}, protocol.TIR{}, protocol.RStar2{}} {
			for _, thought := range []string{"", "I look."} {
				text, ok := p.Write(env.Move{Thought: thought, Code: code})
				require.True(t, ok, "%s %q", p.Spec().Name, code)
				got := p.Parse(text, nil)
				require.Len(t, got.Calls, 1)
				require.Equal(t, code, got.Calls[0].Code)
				require.Equal(t, thought, got.Reasoning)
			}
		}
		text, ok := protocol.Program{}.Write(env.Move{Answer: code})
		require.True(t, ok)
		require.Equal(t, code, protocol.Program{}.Parse(text, nil).Answer)
	}
}

// Long responses that are full of tags are read in time.
func TestLongReasoning(t *testing.T) {
	const n = 1 << 15
	for _, text := range []string{"<think>", "</think>", "<think></think>", "<tool_call>", "<tool_call></think>",
		"<tool_call></tool_call>", "```python\nx\n```<think></think>"} {
		long := strings.Repeat(text, n) + "</think>"
		for _, p := range []protocol.Protocol{protocol.Hermes{}, protocol.TIR{}} {
			require.Empty(t, p.Parse(long+end, nil).Calls, text)
		}
	}
}
