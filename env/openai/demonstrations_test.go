package openai

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const shownCall = `{"messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "2+2?"},
 {"role": "assistant", "content": "I compute.", "tool_calls": [{"id": "a", "type": "function", "function":
  {"name": "python", "arguments": "{\"code\": \"print(2+2)\"}"}}]}, {"role": "tool", "tool_call_id": "a", "content": "4"},
 {"role": "assistant", "content": "So \\boxed{4}."}]}`

func TestReadDemonstrations(t *testing.T) {
	got, err := ReadDemonstrations([]byte(strings.ReplaceAll(shownCall, "\n", "") + "\n\n" +
		`{"messages": [{"role": "user", "content": "Hi?"}, {"role": "assistant", "content": "Ho"}], "reward": "?"}`))
	require.NoError(t, err)
	require.Len(t, got, 2)
	require.Equal(t, "2+2?", got[0].Question)
	require.Equal(t, []any{`{"code": "print(2+2)"}`, "I compute.", "4"},
		[]any{got[0].Steps[0].Call.Arguments, got[0].Steps[0].Text, got[0].Steps[0].Tool})
	require.Equal(t, Demonstration{Line: 3, Question: "Hi?", Steps: []Step{{Text: "Ho"}}}, got[1])
}

func TestBadDemonstrations(t *testing.T) {
	const user, done = `{"role": "user", "content": "q"}`, `{"role": "assistant", "content": "a"}`
	call := func(arguments string) string {
		return `{"role": "assistant", "tool_calls": [{"id": "a", "function": {"name": "f", "arguments": "` + arguments +
			`"}}]}`
	}
	const answer = `{"role": "tool", "tool_call_id": "a", "content": "4"}`
	for messages, want := range map[string]string{
		user:                                   "messages: holds no message of the assistant",
		done:                                   "messages[0].role: is assistant before any question",
		user + "," + user + "," + done:         "messages[1].role: is a second message of the user",
		user + "," + done + "," + done:         "messages[2].role: is assistant after the final answer",
		user + "," + call("{}"):                "messages[1].tool_calls[0]: has no answer",
		user + "," + call("{}") + "," + answer: "messages: end without a final answer",
		user + "," + call("[") + "," + answer + "," + done: "arguments: must be a JSON object, got",
		user + `, {"role": "assistant", "content": " "}`:   "messages[1].content: is blank, and there is no call",
		`{"role": "user", "content": ""},` + done:          "messages[0].content: is blank",
		user + "," + done +
			`, {"role": "system", "content": "x"}`: "messages[2].role: is system after a response",
		user + `, {"role": "robot"}`: "messages[1].role: must be one of",
	} {
		_, err := ReadDemonstrations([]byte("\n" + `{"messages": [` + messages + `]}`))
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, "line 2: item 0: ")
	}
	for text, want := range map[string]string{"": "the file holds no conversation", "{}": "messages: is missing",
		"\n{\"a\xff\": 1}": "line 2: is not UTF-8", "{\"messages\": [": "line 1"} {
		_, err := ReadDemonstrations([]byte(text))
		require.ErrorContains(t, err, want)
	}
}
