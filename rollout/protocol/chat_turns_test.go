package protocol_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/rollout/protocol"
)

// talk lets chat make a scripted call and have a result twice, and returns the contexts after the first one.
func talk(t *testing.T, chat protocol.Chat, ends string, tools []protocol.Tool) (contexts []string) {
	t.Helper()
	v := protocol.View{Task: "Find it.", Tools: tools}
	for i := range 2 {
		response, ok := chat.Write(env.Move{Tool: "search", Arguments: `{"query": "a"}`})
		require.True(t, ok)
		response = strings.TrimSuffix(response, chat.Spec().EndOfTurn) + ends
		parsed := chat.Parse(response, tools)
		require.Len(t, parsed.Calls, 1)
		require.True(t, parsed.WellFormed, "%q", response)
		v.Turn = i + 1
		v.Rounds = append(v.Rounds, protocol.Round{Response: response, Calls: parsed.Calls, Bodies: []string{"found"}})
		next, err := chat.Render(v)
		require.NoError(t, err)
		contexts = append(contexts, next)
	}
	return contexts
}

// A template whose turns end with nothing of their own: the token that begins the next turn ends them.
func TestChatOfTurnsThatTheNextOneEnds(t *testing.T) {
	chat, err := protocol.Chat{}.With(protocol.ChatModel{
		Added: []string{"<|user|>", "<|assistant|>", "<|observation|>"},
		Template: `{% for m in messages %}{% if m.role == 'tool' %}<|observation|>` + "\n" +
			`<tool_response>{{ m.content }}</tool_response>{% else %}{{ '<|' + m.role + '|>\n' + m.content }}` +
			`{% for c in m.tool_calls or [] %}{% set f = c.function %}` + glmCall + `{% endfor %}{% endif %}` +
			`{% endfor %}` +
			`{% if add_generation_prompt %}<|assistant|>` + "\n{% endif %}"})
	require.NoError(t, err)
	tools := []protocol.Tool{lookup}
	require.NoError(t, chat.CheckCalls(tools))
	require.NoError(t, chat.CheckTools(tools))
	require.Equal(t, "glm45", chat.Calls())
	require.Equal(t, "<|user|>", chat.Spec().EndOfTurn)
	require.Equal(t, []string{"<|observation|>"}, chat.Spec().Stops)
	const next = "\n<tool_response>found</tool_response><|assistant|>\n"
	require.Equal(t, []string{next, next}, talk(t, chat, "<|observation|>", tools))
}

// Results name the calls that they answer, by the ids of the model's family.
func TestChatNamesCallsAsTheFamilyDoes(t *testing.T) {
	chat, err := protocol.Chat{}.With(protocol.ChatModel{Added: []string{"<|im_end|>", "<|im_start|>"},
		Ends: []string{"<|im_end|>"}, Template: `{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' }}` +
			`{% if m.role == 'tool' %}{{ '## Return of ' + m.tool_call_id + '\n' }}{% endif %}{{ m.content }}` +
			`{% if m.tool_calls %}<|tool_calls_section_begin|>{% for c in m.tool_calls %}<|tool_call_begin|>` +
			`{{ c.id }}` +
			`<|tool_call_argument_begin|>{{ c.function.arguments | tojson }}<|tool_call_end|>{% endfor %}` +
			`<|tool_calls_section_end|>{% endif %}<|im_end|>{% endfor %}` +
			`{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}`})
	require.NoError(t, err)
	tools := []protocol.Tool{lookup}
	require.NoError(t, chat.CheckCalls(tools))
	require.NoError(t, chat.CheckTools(tools))
	require.Equal(t, "kimi_k2", chat.Calls())
	const next = "<|im_start|>tool\n## Return of functions.search:0\nfound<|im_end|><|im_start|>assistant\n"
	require.Equal(t, []string{next, next}, talk(t, chat, "<|im_end|>", tools), "the model has written both ids")
}

// A template that keeps reasoning only behind the last question of the user keeps it while results follow.
func TestChatKeepsReasoningWhileResultsFollow(t *testing.T) {
	chat, err := protocol.Chat{}.With(protocol.ChatModel{Added: []string{"<|im_end|>", "<|im_start|>"},
		Ends: []string{"<|im_end|>"}, Template: `{% set n = namespace(last=0) %}{% for m in messages %}` +
			`{% if m.role == 'user' %}{% set n.last = loop.index0 %}{% endif %}{% endfor %}{% for m in messages %}` +
			`{{ '<|im_start|>' + m.role + '\n' }}{% if m.reasoning_content and loop.index0 > n.last %}` +
			`{{ '<think>\n' + m.reasoning_content + '\n</think>\n\n' }}{% endif %}{{ m.content }}` +
			`{% for c in m.tool_calls or [] %}{% set f = c.function %}` + callTemplates["Hermes"].call +
			`{% endfor %}` +
			`{{ '<|im_end|>\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}`})
	require.NoError(t, err)
	tools := []protocol.Tool{lookup}
	require.NoError(t, chat.CheckTools(tools))
	const next = "\n<|im_start|>tool\nfound<|im_end|>\n<|im_start|>assistant\n"
	require.Equal(t, []string{next, next}, talk(t, chat, "<|im_end|>", tools))
	got := chat.Parse("<think>\nSo.\n</think>\n\nIt is 4.<|im_end|>", tools)
	require.Equal(t, "It is 4.", got.Answer)
	require.Equal(t, "\nSo.\n", got.Reasoning)
}

// A template that knows no results of calls gets them as a turn of the user, all of a response in one.
func TestResultsAsTurnsOfTheUser(t *testing.T) {
	chat, err := protocol.Chat{}.With(protocol.ChatModel{Added: []string{"<end_of_turn>", "<start_of_turn>"},
		Template: `{% for m in messages %}{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}` +
			`{{ raise_exception('roles must alternate') }}{% endif %}{{ '<start_of_turn>' + m.role + '\n' }}` +
			`{{ m.content + '<end_of_turn>\n' }}{% endfor %}` +
			`{% if add_generation_prompt %}{{ '<start_of_turn>model\n' }}{% endif %}`})
	require.NoError(t, err)
	tools := []protocol.Tool{lookup}
	require.NoError(t, chat.CheckCalls(tools))
	require.NoError(t, chat.CheckTools(tools))
	require.Contains(t, chat.Warnings(tools), "writes no results of calls, so that they are turns of the user")
	call := `<tool_call>{"name": "search", "arguments": {"query": "a"}}</tool_call>`
	next, err := chat.Render(protocol.View{Task: "Find it.", Tools: tools, Turn: 1, Rounds: []protocol.Round{{
		Response: call + call + "<end_of_turn>", Bodies: []string{"one", "two"}}}})
	require.NoError(t, err)
	require.Equal(t, "\n<start_of_turn>user\n<tool_response>\none\n</tool_response>\n<tool_response>\ntwo\n"+
		"</tool_response><end_of_turn>\n<start_of_turn>model\n", next)
}

// A template that writes earlier turns differently is refused, unless each context is a whole prompt.
func TestChatOfATemplateThatRewrites(t *testing.T) {
	chat, err := protocol.Chat{}.With(protocol.ChatModel{Added: []string{"<|im_end|>", "<|im_start|>"},
		Ends: []string{"<|im_end|>"}, Template: `{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' }}` +
			`{% if m.reasoning_content and loop.last %}{{ '<think>' + m.reasoning_content + '</think>' }}{% endif %}` +
			`{{ m.content }}{% for c in m.tool_calls or [] %}{{ '<tool_call>' + c.function | tojson }}` +
			`{{ '</tool_call>' }}{% endfor %}{{ '<|im_end|>\n' }}{% endfor %}` +
			`{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}`})
	require.NoError(t, err)
	tools := []protocol.Tool{lookup}
	require.NoError(t, chat.CheckCalls(tools))
	require.ErrorContains(t, chat.CheckTools(tools), "writes earlier turns differently")
	require.True(t, chat.Rewrites(tools))
	require.Equal(t, []string{"drops the reasoning of earlier turns at a new turn of the user",
		"changes earlier text when the results of calls follow, so that each turn is a row with a whole prompt " +
			"of its own (layout: turns)"}, chat.Warnings(tools))

	chat.Whole = true
	require.NoError(t, chat.CheckTools(tools))
	require.True(t, chat.Rewrites(tools), "that is the template's")
	require.True(t, chat.Spec().Whole)
	const (
		prompt = "<|im_start|>user\nFind it.<|im_end|>\n"
		turn   = `<|im_start|>assistant` + "\n" + `<tool_call>{"name": "search", "arguments": {"query": "a"}}` +
			"</tool_call><|im_end|>\n<|im_start|>tool\nfound<|im_end|>\n"
		begun = "<|im_start|>assistant\n"
	)
	require.Equal(t, []string{prompt + turn + begun, prompt + turn + turn + begun},
		talk(t, chat, "<|im_end|>", tools))

	call := `<tool_call>{"name": "search", "arguments": {"query": "a"}}</tool_call><|im_end|>`
	response := "<think>So.</think>I read <|im_start|>user." + call
	next, err := chat.Render(protocol.View{Task: "Find it.", Tools: tools, Turn: 1,
		Rounds: []protocol.Round{{Response: response, Bodies: []string{"found"}}}})
	require.NoError(t, err)
	require.Equal(t, prompt+begun+"I read < |im_start|>user."+strings.TrimSuffix(call, "<|im_end|>")+
		"<|im_end|>\n<|im_start|>tool\nfound<|im_end|>\n"+begun, next, "tokens that the policy has spelt are text")
}

// A response is a message with its content and its reasoning, unless it is cut inside of them.
func TestMessagesOfResponses(t *testing.T) {
	chat, tools := protocol.Chat{}, []protocol.Tool{lookup}
	const call = `<tool_call>{"name": "search", "arguments": {"query": "a"}}</tool_call>`
	reasoning := "So."
	for response, want := range map[string]*protocol.AssistantMessage{
		"<think>\nSo.\n</think>\n\nI look.\n" + call + "<|im_end|>": {Content: "I look.", Reasoning: &reasoning},
		call + "<|im_end|>":             {},
		"It is 4.":                      {Content: "It is 4."},
		"I look." + call[:len(call)-12]: nil,
		"<think>So.":                    nil,
	} {
		require.Equal(t, want, chat.Parse(response, tools).Message, response)
	}
}
