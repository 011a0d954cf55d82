package protocol_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/rollout/protocol"
)

// addedTokens are texts in templates that look like added tokens of a tokenizer.
var addedTokens = regexp.MustCompile(`<\|[^|<>\s'"{}]{1,40}\|>|<｜[^｜'"{}]{1,40}｜>|\[/?[A-Z_]{3,20}\]|</?s>|` +
	`<(?:start|end)_of_turn>|<\|turn>|<turn\|>|\[e~\[|\]~b\]|<seed:[a-z_]+>|<SPECIAL_\d+>|<\|tool_call>|` +
	`<tool_call\|>|<end_of_utterance>|<tool_response\|>|<\|tool_response>|\[\|[a-z]+\|\]|</assistant>|<end_of_sentence>|<sep>`)

// reasons are the causes for which a published template cannot be used, by what their errors say.
var reasons = []string{"strftime_now", "no token of its own", "roles must alternate", "the template refuses",
	"does not write the results", "is no form of calls", "does not write what", "writes no call", "does not read",
	"is not supported", "chat template: line"}

// TestPublishedTemplatesCalls binds chat to the chat templates of the packages that tools/templates.sh pins, has it
// read the calls that they write, and logs how many there are of which form. Whatever is bound is read right.
func TestPublishedTemplatesCalls(t *testing.T) {
	folder := os.Getenv("ROPEWALK_TEMPLATES")
	if folder == "" {
		t.Skip("ROPEWALK_TEMPLATES names no folder of chat templates: make test-templates")
	}
	files, err := filepath.Glob(filepath.Join(folder, "*.jinja"))
	require.NoError(t, err)
	tools := []protocol.Tool{{Name: "find_train", Description: "Finds a train.", Parameters: json.RawMessage(`{` +
		`"type": "object", "properties": {"from": {"type": "string", "description": "from"}, "seats": {"type": ` +
		`"integer", "description": "seats"}, "legs": {"type": "array", "items": {"type": "object"}, ` +
		`"description": "legs"}, "now": {"type": "boolean", "description": "now"}, ` +
		`"note": {"type": ["string", "null"], "description": "note"}}}`)}}
	forms := map[string]int{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		added := append(addedTokens.FindAllString(string(text), -1), "<s>", "</s>", "<|endoftext|>")
		if strings.Contains(string(text), "'<|' +") || strings.Contains(string(text), `"<|" +`) {
			added = append(added, "<|user|>", "<|end|>", "<|assistant|>", "<|tool|>")
		}
		if strings.Contains(string(text), "':opensource'") { // it puts its tokens together
			added = append(added, "<｜hy_eos:opensource｜>", "<｜hy_User:opensource｜>", "<｜hy_Assistant:opensource｜>")
		}
		chat, err := protocol.Chat{}.With(protocol.ChatModel{Template: string(text), Added: added,
			Special: map[string]string{"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>"}})
		if err == nil {
			forms["bound without tools"]++
			err = chat.CheckCalls(tools)
		}
		if chat.Whole = err == nil && chat.Rewrites(tools); err == nil {
			err = chat.CheckTools(tools)
		}
		name := chat.Calls()
		if err != nil {
			name = "refused"
			known := false
			for _, reason := range reasons {
				known = known || strings.Contains(err.Error(), reason)
			}
			require.True(t, known, "%s: %v", file, err)
		}
		forms[name]++
		spec := chat.Spec()
		t.Logf("%s: %s, ends with %q and %q, %q: %v", filepath.Base(file), name, spec.EndOfTurn, spec.Stops,
			chat.Warnings(tools), err)
	}
	t.Log(forms)
	require.GreaterOrEqual(t, len(files)-forms["refused"], 180)
}
