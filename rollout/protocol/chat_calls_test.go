package protocol_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/rollout/protocol"
)

const (
	callObject = `{'name': f.name, 'arguments': f.arguments} | tojson`
	taggedCall = `'<tool_call>' + (` + callObject + `) + '</tool_call>'`
	xmlCall    = "<tool_call>\n<function={{ f.name }}>\n{% for k, v in f.arguments | items %}<parameter={{ k }}>\n" +
		"{{ v }}\n</parameter>\n{% endfor %}</function>\n</tool_call>"
	glmCall = "<tool_call>{{ f.name }}\n{% for k, v in f.arguments.items() %}<arg_key>{{ k }}</arg_key>\n" +
		"<arg_value>{{ v }}</arg_value>\n{% endfor %}</tool_call>"
)

// callTemplates write calls in the forms of published families, and say whether protocol chat reads them.
var callTemplates = map[string]struct {
	call, prompt string
	reads        bool
}{
	"Hermes": {`{{ '<tool_call>\n' + (` + callObject + `) + '\n</tool_call>' }}`, "", true},
	"arguments as text": {`{{ '<tool_call>\n{"name": "' + f.name + '", "arguments": ' + f.arguments + ` +
		`'}\n</tool_call>' }}`, "", true},
	"Qwen3-Coder": {xmlCall, "", true},
	"GLM":         {glmCall, "", true},
	"Llama":       {`{{ {'name': f.name, 'parameters': f.arguments} | tojson }}`, "", true},
	"Mistral":     {`{{ '[TOOL_CALLS][' + (` + callObject + `) + ']' }}`, "", true},
	"DeepSeek": {`{{ '<｜tool▁calls▁begin｜>function<｜tool▁sep｜>' + f.name + '\n' + f.arguments + ` +
		`'<｜tool▁calls▁end｜>' }}`, "", false},
	"no arguments":             {`{{ '<tool_call>{"name": "' + f.name + '"}</tool_call>' }}`, "", false},
	"text behind it":           {`{{ ` + taggedCall + ` + '.' }}`, "", false},
	"one call too many":        {`{{ (` + taggedCall + `) * 2 }}`, "", false},
	"refuses calls":            {`{{ raise_exception('no tools here') }}`, "", false},
	"opens the reasoning":      {`{{ '</think>\n' + ` + taggedCall + ` }}`, `<think>\n`, true},
	"leaves the reasoning out": {`{{ ` + taggedCall + ` }}`, `<think>\n`, true},
	"writes no calls":          {"", "", true},
}

func callModel(call, prompt string) protocol.ChatModel {
	return protocol.ChatModel{Added: []string{"<|im_start|>", "<|im_end|>"}, Ends: []string{"<|im_end|>"},
		Template: `{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' + m.content }}` +
			`{% for c in m.tool_calls or [] %}{% set f = c.function %}` + call + `{% endfor %}{{ '<|im_end|>\n' }}` +
			`{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n` + prompt + `' }}{% endif %}`}
}

// A template is bound with tools only if its calls can be read, whatever the arguments' types, and without tools as it
// is.
func TestChatReadsTheCallsOfItsTemplate(t *testing.T) {
	typed := protocol.Tool{Name: "book", Parameters: json.RawMessage(`{"type": "object", "properties": {"n": {` +
		`"type": "integer"}, "now": {"type": "boolean"}, "to": {"type": ["string", "null"]}, ` +
		`"at": {"enum": ["noon"]}}}`)}
	none := protocol.Tool{Name: "a"} // letters of the template's own
	for name, c := range callTemplates {
		chat, err := protocol.Chat{}.With(callModel(c.call, c.prompt))
		require.NoError(t, err, "%s: without tools it binds", name)
		for _, tools := range [][]protocol.Tool{nil, {lookup}, {protocol.Python, typed, none}} {
			if err := chat.CheckCalls(tools); c.reads {
				require.NoError(t, err, name)
			} else {
				require.ErrorContains(t, err, "the chat template writes", name)
				require.ErrorContains(t, err, "call of the tool ", name)
			}
		}
	}
	chat, err := protocol.Chat{}.With(callModel(callTemplates["DeepSeek"].call, ""))
	require.NoError(t, err)
	require.ErrorContains(t, chat.CheckCalls([]protocol.Tool{lookup}), `is no form of calls that protocol chat reads; `+
		`rollout.tool_format names one of them: hermes, seed_oss`)
	chat, err = protocol.Chat{Format: "llama3"}.With(callModel(callTemplates["writes no calls"].call, ""))
	require.NoError(t, err)
	require.NoError(t, chat.CheckCalls([]protocol.Tool{lookup}))
	got := chat.Parse(`{"name": "search", "parameters": {"query": "q"}}<|im_end|>`, []protocol.Tool{lookup})
	require.Len(t, got.Calls, 1)
	require.True(t, got.WellFormed)
	// a template that writes texts of calls without quotes, as no model does
	const unquoted = `{{ f.name }}({% for k, v in f.arguments.items() %}{{ k }}={{ v }}{% endfor %})`
	chat, err = protocol.Chat{}.With(callModel(unquoted, ""))
	require.NoError(t, err)
	require.ErrorContains(t, chat.CheckCalls([]protocol.Tool{lookup}), "is no form of calls")
	chat, err = protocol.Chat{Format: "pythonic"}.With(callModel(unquoted, ""))
	require.NoError(t, err)
	require.NoError(t, chat.CheckCalls([]protocol.Tool{lookup}))
	require.Contains(t, strings.Join(chat.Warnings(nil), ", "), "not in that of rollout.tool_format")
	// one that does not end where it writes calls
	chat, err = protocol.Chat{}.With(callModel(`{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}`+
		`{% endfor %}`, ""))
	require.NoError(t, err)
	require.ErrorContains(t, chat.CheckCalls([]protocol.Tool{lookup}), "the template takes more than")
	_, err = protocol.Chat{Format: "nosuch"}.With(callModel(xmlCall, ""))
	require.ErrorContains(t, err, `no form of calls "nosuch"`)
}

// Where the template opens the reasoning, a response is reasoning until it closes it.
func TestChatOfATemplateThatOpensTheReasoning(t *testing.T) {
	chat, err := protocol.Chat{}.With(callModel(callTemplates["opens the reasoning"].call, `<think>\n`))
	require.NoError(t, err)
	require.Equal(t, "<think>\n", chat.Spec().Opening)
	const call = `<tool_call>{"name": "search", "arguments": {"query": "a </think> b"}}</tool_call>`
	got := chat.Parse("I draft "+strings.Replace(call, "</think>", "", 1)+" and \\boxed{1}", []protocol.Tool{lookup})
	require.Empty(t, got.Calls)
	require.False(t, got.HasAnswer)
	require.Zero(t, got.AnswerTags+got.OpenCalls)
	got = chat.Parse("I draft <tool_call>.</think>"+call+"<|im_end|>", []protocol.Tool{lookup})
	require.Len(t, got.Calls, 1)
	require.Empty(t, got.Calls[0].Error)
	require.True(t, got.WellFormed)
	require.Equal(t, "I draft <tool_call>.", got.Reasoning)
	got = chat.Parse("\\boxed{1}\n</think>\n\nIt is 2.<|im_end|>", []protocol.Tool{})
	require.Equal(t, "It is 2.", got.Answer)
	require.True(t, got.WellFormed)
}
