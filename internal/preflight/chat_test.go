package preflight_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/preflight"
	"github.com/ropewalk/ropewalk/internal/pretrained"
	"github.com/ropewalk/ropewalk/policy/tokenizer"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/rollout/protocol"
)

// templated is a model with a chat template.
func templated(t *testing.T, template string) *pretrained.Model {
	t.Helper()
	tokens, err := tokenizer.Train([]string{"<|im_start|>", "<|im_end|>"}, []string{"one and two"}, 300)
	require.NoError(t, err)
	return &pretrained.Model{Template: template, Tokens: tokens, Ends: []string{"<|im_end|>"}}
}

// forgetful writes the reasoning and the calls of the last message of the assistant alone, if results follow or not.
const forgetful = `{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' }}{% if m.reasoning_content and ` +
	`loop.last %}{{ '<think>' + m.reasoning_content + '</think>' }}{% endif %}{{ m.content }}` +
	`{% for c in m.tool_calls or [] %}{{ '<tool_call>' + c.function | tojson + '</tool_call>' }}{% endfor %}` +
	`{{ '<|im_end|>\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}`

func TestNotesOnChatTemplates(t *testing.T) {
	recipe := func(set ...string) *recipes.Recipe {
		r, err := recipes.Resolve("smollm2", "", set, nil, nil)
		require.NoError(t, err)
		return &r.Recipe
	}
	notes := func(r *recipes.Recipe, template string) []string {
		out, err := preflight.ChatNotes(r, templated(t, template))
		require.NoError(t, err)
		return out
	}
	const ends = `a response ends with "<|im_end|>"`
	require.Equal(t, []string{ends, "the chat template writes no reasoning of earlier turns"},
		notes(recipe(), protocol.ChatML))
	calling := []string{"rollout.tools=[python]", "rollout.max_turns=3"}
	require.Equal(t, "calls have the form hermes, and "+ends, notes(recipe(calling...), protocol.ChatML)[0])

	_, err := preflight.ChatNotes(recipe(calling...), templated(t, forgetful))
	refused(t, err, "layout: must be turns: the chat template of the model at policy.checkpoint writes earlier turns")
	_, err = preflight.ChatNotes(recipe(append(calling, "layout=turns", "rollout.history=2")...),
		templated(t, forgetful))
	refused(t, err, "rollout.history: cuts earlier turns")
	require.Equal(t, []string{"calls have the form hermes, and " + ends,
		"the chat template drops the reasoning of earlier turns at a new turn of the user",
		"the chat template changes earlier text when the results of calls follow, so that each turn is a row with a " +
			"whole prompt of its own (layout: turns)"},
		notes(recipe(append(calling, "layout=turns")...), forgetful))
	require.False(t, preflight.Rewrites(templated(t, protocol.ChatML)))
	require.True(t, preflight.Rewrites(templated(t, forgetful)))
	require.False(t, preflight.Rewrites(templated(t, "")), "protocol chat refuses it")

	silent := strings.ReplaceAll(protocol.ChatML, "{{ '<|im_start|>' + m.role",
		"{% if m.role == 'tool' %}{% continue %}{% endif %}{{ '<|im_start|>' + m.role")
	require.Contains(t, notes(recipe(calling...), silent),
		"the chat template writes no results of calls, so that they are turns of the user")

	for template, text := range map[string]string{
		"{% for":                             "chat template: line 1",
		"{{ raise_exception('not today') }}": "the template refuses the conversation: not today",
		"{% for a in range(9999) %}{% for b in range(9999) %}{% endfor %}{% endfor %}": "takes more than 4194304 steps",
		"{% for a in range(9999) %}{{ 'x' * 99999 }}{% endfor %}":                      "more than 134217728 bytes",
		strings.ReplaceAll(protocol.ChatML, protocol.EndOfTurn, "<|end|>"): `"<|end|>\n", which begins with no token ` +
			`of its own`,
		"{% for m in messages %}{{ m.content }}{{ m.tool_calls or '' }}<|im_end|>{% endfor %}": "is no form of calls",
	} {
		_, err = preflight.ChatNotes(recipe(calling...), templated(t, template))
		refused(t, err, "policy.checkpoint: the model at smollm2-135m-instruct.gguf does not fit rollout.protocol: ")
		require.ErrorContains(t, err, text)
	}
}
