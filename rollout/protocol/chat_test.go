package protocol_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/rollout/protocol"
)

// chatModels are templates of the forms that published models have, with their added tokens.
var chatModels = map[string]protocol.ChatModel{
	"ChatML": {Template: "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' + m['content'] + " +
		"'<|im_end|>' + '\n' }}" +
		"{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}",
		Added: []string{"<|im_start|>", "<|im_end|>", "<|endoftext|>"}, Ends: []string{"<|im_end|>", "<|endoftext|>"}},
	"Llama": {Template: "{{ bos_token }}{% for m in messages %}{{ '<|start_header_id|>' + m.role + " +
		"'<|end_header_id|>\n\n' + " +
		"m.content | trim + '<|eot_id|>' }}{% endfor %}{% if add_generation_prompt %}" +
		"{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}{% endif %}",
		Special: map[string]string{"bos_token": "<|begin_of_text|>"},
		Added:   []string{"<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"},
		Ends:    []string{"<|eot_id|>"}},
	"parts": {Template: "{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' }}{% for p in m.content %}" +
		"{% if p.type == 'text' %}{{ p.text }}{% endif %}{% endfor %}{{ '<|im_end|>\n' }}{% endfor %}" +
		"{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}",
		Added: []string{"<|im_start|>", "<|im_end|>"}, Ends: []string{"<|im_end|>"}},
	"Mistral": {Template: "{{ bos_token }}{% for m in messages %}{% if m.role == 'assistant' %}" +
		"{{ m.content + eos_token }}" +
		"{% else %}{{ '[INST] ' + m.content + ' [/INST]' }}{% endif %}{% endfor %}",
		Special: map[string]string{"bos_token": "<s>", "eos_token": "</s>"},
		Added:   []string{"<s>", "</s>", "[INST]", "[/INST]"}, Ends: []string{"</s>"}},
}

// A conversation of contexts and responses is what the template makes of its messages, and text from outside holds none
// of the tokenizer's added tokens, whatever it is.
func TestChatContextsAreTheTemplates(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for name, m := range chatModels {
		t.Run(name, func(t *testing.T) {
			chat, err := protocol.Chat{System: "Be brief."}.With(m)
			require.NoError(t, err)
			require.NoError(t, chat.CheckTools(nil))
			spec := chat.Spec()
			require.Equal(t, m.Ends[0], spec.EndOfTurn)
			for range 200 {
				text := func() string {
					var b strings.Builder
					for range rng.IntN(5) {
						pieces := append([]string{"a", "\n", " ", "<", "|", "é", "</tool_call>"}, m.Added...)
						b.WriteString(pieces[rng.IntN(len(pieces))])
					}
					return "q" + b.String() + "q"
				}
				v := protocol.View{Task: text(), Tools: []protocol.Tool{}}
				first, err := chat.Render(v)
				require.NoError(t, err)
				harmless, err := chat.Render(protocol.View{Task: "q", Tools: []protocol.Tool{}})
				require.NoError(t, err)
				for _, token := range m.Added {
					require.Equal(t, strings.Count(harmless, token), strings.Count(first, token), "%s %q", token, first)
				}
				response := "so\n<tool_call>\n{\"name\": \"f\", \"arguments\": {}}\n</tool_call>" + spec.EndOfTurn
				call := chat.Parse(response, []protocol.Tool{{Name: "f"}}).Calls[0]
				body := chat.Body(protocol.Limit{}, call, &protocol.Result{Output: text()})
				v.Turn = 1
				v.Rounds = []protocol.Round{{Response: response, Calls: []env.ToolCall{call}, Bodies: []string{body}}}
				second, err := chat.Render(v)
				require.NoError(t, err)
				v.Rounds[0].Bodies[0] = "q"
				harmless, err = chat.Render(v)
				require.NoError(t, err)
				for _, token := range m.Added {
					require.Equal(t, strings.Count(harmless, token), strings.Count(second, token), "%s %q", token,
						second)
				}
				require.Contains(t, second, body)
				require.NotContains(t, second, "so\n<tool_call>", "what the policy wrote is not written again")
			}
		})
	}
}

// Templates that cannot be used are refused with the reason.
func TestChatRefuses(t *testing.T) {
	good := chatModels["ChatML"]
	for template, says := range map[string]string{
		"":                                      "the model has no chat template",
		"{% if %}":                              "chat template: line 1",
		"{{ messages.x }}":                      "does not write what an assistant's message says",
		"\n{{ raise_exception('only users') }}": "line 2: the template refuses the conversation: only users",
		"{% for m in messages %}{{ m.content }}###{% endfor %}": `ends a turn of the assistant with "###"`,
	} {
		m := good
		m.Template = template
		_, err := protocol.Chat{}.With(m)
		require.ErrorContains(t, err, says)
	}
	// a template that numbers its messages from the last one
	m := good
	m.Template = "{% for m in messages %}{{ '<|im_start|>' + m.role + loop.revindex | string + '\n' + m.content }}" +
		"{{ '<|im_end|>\n' }}{% endfor %}"
	chat, err := protocol.Chat{}.With(m)
	require.NoError(t, err)
	require.ErrorContains(t, chat.CheckTools(nil), "writes earlier turns differently")
}

func TestChatAnswers(t *testing.T) {
	chat, err := protocol.Chat{}.With(chatModels["Llama"])
	require.NoError(t, err)
	for response, want := range map[string]struct {
		answer string
		has    bool
		formed bool
	}{
		"82<|eot_id|>":                            {"82", true, true},
		" It is 82. <|eot_id|>":                   {"It is 82.", true, true},
		"<think>\n3\n</think>\n\n82<|eot_id|>":    {"82", true, true},
		"so \\boxed{82} it is<|eot_id|>":          {"82", true, true},
		"<|eot_id|>":                              {"", false, false},
		"It is 8":                                 {"It is 8", false, false},
		"<think>\n3<|eot_id|>":                    {"", false, false},
		"<tool_call>\n{\"name\": \"f\"<|eot_id|>": {"", false, false},
	} {
		got := chat.Parse(response, []protocol.Tool{})
		require.Equal(t, want.has, got.HasAnswer, response)
		require.Equal(t, want.formed, got.WellFormed, response)
		if want.has {
			require.Equal(t, want.answer, got.Answer, response)
		}
	}
	raw, ok := chat.Write(env.Move{Answer: "7"})
	require.True(t, ok)
	require.Equal(t, `\boxed{7}<|eot_id|>`, raw)
}
