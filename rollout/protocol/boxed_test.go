package protocol_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/testing/protocoltest"
	"github.com/ropewalk/ropewalk/rollout/protocol"
)

func FuzzBoxed(f *testing.F) { protocoltest.Fuzz(f, protocol.Boxed{}) }

func FuzzProgram(f *testing.F) { protocoltest.Fuzz(f, protocol.Program{}) }

func TestPromptsWithoutTools(t *testing.T) {
	v := protocol.View{Instruction: "Be brief.", Task: "What is \\boxed{1}+1? ```", Tools: []protocol.Tool{lookup}}
	require.Equal(t, "<|im_start|>system\nBe brief.\nPlease reason step by step, and put your final answer within "+
		"\\boxed{}.<|im_end|>\n<|im_start|>user\nWhat is \\ boxed{1}+1? ```<|im_end|>\n<|im_start|>assistant\n",
		protocol.Boxed{}.Context(v))
	require.Equal(t, "<|im_start|>system\nPlease reason step by step, and write a Python program that completes the "+
		"task in one python block.\nBe brief.<|im_end|>\n<|im_start|>user\nWhat is \\boxed{1}+1? ` ``<|im_end|>\n"+
		"<|im_start|>assistant\n", protocol.Program{}.Context(v))
}

func TestBoxedParses(t *testing.T) {
	for text, want := range map[string]protocol.Parsed{
		`It is \boxed{2}.<|im_end|>`: {Reasoning: "It is ", Answer: "2", HasAnswer: true, AnswerTags: 1,
			WellFormed: true},
		`<think>a</think>\boxed{\frac{1}{2}}<|im_end|>`: {Reasoning: "a", Answer: `\frac{1}{2}`, HasAnswer: true,
			AnswerTags: 1, WellFormed: true},
		`\boxed{1} or \boxed{2}<|im_end|>`:        {Answer: "2", HasAnswer: true, AnswerTags: 2, WellFormed: true},
		`\boxed{2}`:                               {Answer: "2", HasAnswer: true, AnswerTags: 1}, // cut off
		`\boxed{2<|im_end|>`:                      {},
		"nothing<|im_end|>":                       {Reasoning: "nothing"},
		"<tool_call>\n{}\n</tool_call><|im_end|>": {Reasoning: "<tool_call>\n{}\n</tool_call>"},
	} {
		require.Equal(t, want, protocol.Boxed{}.Parse(text, nil), "%q", text)
	}
}

func TestProgramParses(t *testing.T) {
	const program = "```python\ndef f():\n    return 1\n```"
	whole := protocol.Parsed{Answer: "def f():\n    return 1", HasAnswer: true, AnswerTags: 1, WellFormed: true}
	loose := whole
	loose.WellFormed = false
	two := loose
	two.AnswerTags = 2
	for text, want := range map[string]protocol.Parsed{
		program + "<|im_end|>": whole,
		"\n" + program + "\n\n<|im_end|>": {Reasoning: "\n", Answer: whole.Answer, HasAnswer: true, AnswerTags: 1,
			WellFormed: true},
		program:                                  loose, // cut off
		program + " That is all.<|im_end|>":      loose,
		"```py\nx\n```" + program + "<|im_end|>": two,
		"```python\n    return 1\n```<|im_end|>": {Answer: "    return 1", HasAnswer: true, AnswerTags: 1,
			WellFormed: true},
		"```python\ndef f():\n    return 1":  {},
		"```\ndef f(): pass\n```<|im_end|>":  {Reasoning: "```\ndef f(): pass\n```"},
		program + "\n```python\nx<|im_end|>": loose,
	} {
		require.Equal(t, want, protocol.Program{}.Parse(text, nil), "%q", text)
	}
}
