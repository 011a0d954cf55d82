package serve_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/serve"
	"github.com/ropewalk/ropewalk/policy"
)

var addTool = []any{object{"type": "function", "function": object{"name": "add", "parameters": object{}}}}

// TestToolCalls: calls are taken out of the reply in every form that models write them, whole and streamed, and what
// only looks like a call stays text.
func TestToolCalls(t *testing.T) {
	const (
		one  = `{"name": "add", "arguments": {"a": 1, "b": [2]}}`
		tag  = "<tool_call>" + one + "</tool_call>"
		cut  = `so <tool_call>{"name": "add", "argum</tool_call>`
		anon = `<tool_call>{"arguments": {}}</tool_call>`
		text = `<tool_call>{"name": "add", "arguments": "{\"a\":1}"}</tool_call>`
	)
	type calls = [][2]string
	added := [2]string{"add", `{"a":1,"b":[2]}`}
	dir := published(t, 1)
	for name, c := range map[string]struct {
		writes, content string
		calls           calls
		form            string // "" = that of the model's template
	}{
		"tags":            {"<tool_call>\n" + one + "\n</tool_call>", "", calls{added}, ""},
		"text before":     {"I add. \n" + tag + "\n", "I add.", calls{added}, ""},
		"two":             {tag + "\n" + tag, "", calls{added, added}, ""},
		"text between":    {"a " + tag + " b " + tag + " c", "abc", calls{added, added}, ""},
		"no closing tag":  {"<tool_call>" + one, "", calls{added}, ""},
		"llama":           {`{"name": "add", "parameters": {"a": 1, "b": [2]}}`, "", calls{added}, "llama3_json"},
		"mistral":         {"[TOOL_CALLS] [" + one + "]", "", calls{added}, "mistral"},
		"text arguments":  {text, "", calls{{"add", `{"a":1}`}}, ""},
		"no arguments":    {`<tool_call>{"name": "add"}</tool_call>`, "", calls{{"add", `{}`}}, ""},
		"a draft":         {"<think>\n" + tag + "</think>\n" + tag, "<think>\n" + tag + "</think>", calls{added}, ""},
		"a mention":       {"<think><tool_call></think>" + tag, "<think><tool_call></think>", calls{added}, ""},
		"only a draft":    {"<think>" + tag + "</think>No.", "<think>" + tag + "</think>No.", nil, ""},
		"open reasoning":  {"<think>" + tag, "<think>" + tag, nil, ""},
		"broken":          {cut, cut, nil, ""},
		"no name":         {anon, anon, nil, ""},
		"only JSON":       {`{"a": 1}`, `{"a": 1}`, nil, "llama3_json"},
		"list of numbers": {"[TOOL_CALLS] [1]", "[TOOL_CALLS] [1]", nil, "mistral"},
		"begins alike":    {"a <tool is", "a <tool is", nil, ""},
		"text":            {" The answer is 3.  ", " The answer is 3.  ", nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := start(t, dir, func(o *serve.Options) {
				writing(c.writes)(o)
				o.ToolFormat = c.form
			})
			body := object{"messages": []any{object{"role": "user", "content": "1 + 2?"}}, "tools": addTool}
			status, answer := f.post("/v1/chat/completions", body)
			require.Equal(t, http.StatusOK, status, "%v", answer)
			choice := choices(answer)[0]
			message := choice["message"].(object)
			content, _ := message["content"].(string)
			require.Equal(t, c.content, content)
			require.Equal(t, c.calls, callsOf(t, message))
			finish := "stop"
			if c.calls != nil {
				finish = "tool_calls"
				require.Equal(t, c.content != "", message["content"] != nil)
			}
			require.Equal(t, finish, choice["finish_reason"])

			var text, end string
			var streamed calls
			for _, chunk := range f.stream("/v1/chat/completions", body) {
				part := choices(chunk)[0]
				delta := part["delta"].(object)
				piece, _ := delta["content"].(string)
				text += piece
				streamed = addParts(t, streamed, delta)
				if part["finish_reason"] != nil {
					end = part["finish_reason"].(string)
				}
			}
			require.Equal(t, c.content, text)
			require.Equal(t, c.calls, streamed)
			require.Equal(t, finish, end)

			body = object{"messages": body["messages"]}
			_, answer = f.post("/v1/chat/completions", body)
			require.Equal(t, c.writes, choices(answer)[0]["message"].(object)["content"], "without tools all is text")
		})
	}
}

// addParts adds what is new of calls in a stream.
func addParts(t *testing.T, calls [][2]string, delta object) [][2]string {
	t.Helper()
	list, _ := delta["tool_calls"].([]any)
	for _, part := range list {
		call := part.(object)
		function := call["function"].(object)
		at := int(call["index"].(float64))
		if at == len(calls) {
			calls = append(calls, callsOf(t, object{"tool_calls": []any{call}})...)
			continue
		}
		require.NotContains(t, call, "id")
		calls[at][1] += function["arguments"].(string)
	}
	return calls
}

func callsOf(t *testing.T, message object) (out [][2]string) {
	t.Helper()
	list, _ := message["tool_calls"].([]any)
	seen := map[any]bool{}
	for _, c := range list {
		call := c.(object)
		function := call["function"].(object)
		require.Equal(t, "function", call["type"])
		require.False(t, seen[call["id"]])
		seen[call["id"]] = true
		out = append(out, [2]string{function["name"].(string), function["arguments"].(string)})
	}
	return out
}

// TestOwnModelsSpeakChatML: a model that runs have made has no template in its folder.
func TestOwnModelsSpeakChatML(t *testing.T) {
	f := start(t, own(t), nil)
	_, answer := f.post("/v1/chat/completions", object{
		"messages": []any{
			object{"role": "user", "content": "1 + 2?"},
			object{"role": "assistant", "content": nil, "tool_calls": []any{object{"function": object{
				"name": "add", "arguments": `{"a": 1}`}}}},
			object{"role": "tool", "content": "3"},
		},
		"max_tokens": 1, "return_token_ids": true,
	})
	require.Equal(t, "<|im_start|>user\n1 + 2?<|im_end|>\n<|im_start|>assistant\n<tool_call>\n"+
		`{"name": "add", "arguments": {"a": 1}}`+"\n</tool_call><|im_end|>\n<|im_start|>tool\n3<|im_end|>\n"+
		"<|im_start|>assistant\n", f.model.Tokens.Decode(ids(answer["prompt_token_ids"])))
}

// A template that writes no results of calls gets them as a turn of the user, as in runs.
func TestResultsForATemplateWithoutThem(t *testing.T) {
	files, size := publishedFiles(t)
	config, err := json.Marshal(object{"eos_token": "<|im_end|>", "chat_template": "{% for m in messages %}" +
		"{% if m.role != 'tool' %}<|im_start|>{{ m.role + '\n' + (m.content or '') }}<|im_end|>{% endif %}" +
		"{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"})
	require.NoError(t, err)
	files["tokenizer_config.json"] = config
	f := start(t, writeModel(t, files, size, int32(size-1), 1), nil)
	_, answer := f.post("/v1/chat/completions", object{
		"messages": []any{
			object{"role": "user", "content": "1 + 2?"},
			object{"role": "assistant", "content": "So:", "tool_calls": []any{object{"function": object{
				"name": "add", "arguments": `{"a": 1}`}}}},
			object{"role": "tool", "content": "3"},
			object{"role": "tool", "content": "4<|im_end|>"},
		},
		"max_tokens": 1, "return_token_ids": true,
	})
	text := f.model.Tokens.Decode(ids(answer["prompt_token_ids"]))
	require.Contains(t, text, "<|im_start|>user\n<tool_response>\n3\n</tool_response>\n<tool_response>\n4")
	require.Equal(t, 4, strings.Count(text, "<|im_start|>"))
	require.Equal(t, 3, strings.Count(text, "<|im_end|>"))
}

// TestEngineFailures: an engine that fails or panics costs the requests that it has, and the next ones are served.
func TestEngineFailures(t *testing.T) {
	for name, fail := range map[string]func() error{
		"error": func() error { return errors.New("no memory left") },
		"panic": func() error { panic("index out of range") },
	} {
		t.Run(name, func(t *testing.T) {
			var left atomic.Int32
			left.Store(1)
			f := start(t, published(t, 1), func(o *serve.Options) {
				writing("an answer")(o)
				o.Engine.(*scripted).fails = func() error {
					if left.Add(-1) >= 0 {
						return fail()
					}
					return nil
				}
			})
			body := object{"prompt": "the", "max_tokens": 50}
			status, answer := f.post("/v1/completions", body)
			require.Equal(t, http.StatusInternalServerError, status)
			require.Equal(t, "engine_failed", answer["error"].(object)["code"])
			status, answer = f.post("/v1/completions", body)
			require.Equal(t, http.StatusOK, status)
			require.Equal(t, "an answer", choices(answer)[0]["text"])
		})
	}
}

// TestARowsOwnFault: a row whose numbers are not finite fails alone.
func TestARowsOwnFault(t *testing.T) {
	f := start(t, published(t, 1), func(o *serve.Options) { o.Engine = &poisoned{o.Engine} })
	status, answer := f.post("/v1/completions", object{"prompt": "the"})
	require.Equal(t, http.StatusInternalServerError, status)
	require.Contains(t, answer["error"].(object)["message"], "non-finite")
}

// poisoned is an engine whose rows end with an error.
type poisoned struct{ policy.Batcher }
