package servers_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/checkpoint"
	"github.com/ropewalk/ropewalk/policy/servers"
	"github.com/ropewalk/ropewalk/policy/tokenizer"
)

// A server of chats gets a prompt as messages, with the fields that it takes, and its message becomes the response.
func TestChat(t *testing.T) {
	tokens, err := tokenizer.New([]string{tokenizer.EndOfTurn, "</search>"})
	require.NoError(t, err)
	s := shape
	s.Vocab, s.Positions = tokens.VocabSize(), 4096
	dir := filepath.Join(t.TempDir(), "policy")
	require.NoError(t, checkpoint.Init(dir, s, 1, tokens.Files()))
	end, _ := tokens.ID(tokenizer.EndOfTurn)
	search, _ := tokens.ID("</search>")
	var asked map[string]any
	var refuse func(body map[string]any) string
	reply := `{"choices":[{"message":{"content":"four"},"finish_reason":"stop"}]}`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		require.Equal(t, "/v1/chat/completions", r.URL.Path)
		asked = nil
		require.NoError(t, json.NewDecoder(r.Body).Decode(&asked))
		if text := refuse(asked); text != "" {
			http.Error(w, `{"error":{"message":"`+text+`"}}`, http.StatusBadRequest)
			return
		}
		_, _ = w.Write([]byte(reply))
	}))
	t.Cleanup(server.Close)
	refuse = func(map[string]any) string { return "" }
	settings := servers.Server{Kind: servers.KindChat, URL: server.URL + "/v1", Model: "gpt", Attempts: 1}
	sampler := open(t, settings)
	can := sampler.Capabilities()
	for _, x := range []policy.Capability{policy.NeedTokenIDs, policy.NeedLogProbs, policy.NeedNewWeights} {
		require.False(t, can.Has(x), x)
	}
	require.True(t, can.Has(policy.NeedGreedy))
	require.NoError(t, sampler.Load(t.Context(), policy.RolePolicy, dir, false))
	ask := func(prompt string, budget int) string {
		t.Helper()
		g, err := sampler.Generate(t.Context(), policy.GenerateRequest{Role: policy.RolePolicy, Temperature: 0.5,
			Prefixes: [][]int32{tokens.Encode(prompt)}, Streams: []uint64{5}, MaxTokens: []int{budget},
			Stop: []int32{end, search}})
		require.NoError(t, err)
		require.Nil(t, g.LogProbs)
		return tokens.Decode(g.Tokens[0])
	}
	require.Equal(t, "four<|im_end|>", ask("<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\n"+
		"2+2?<|im_end|>\n<|im_start|>assistant\n", 100))
	message := func(role, content string) any { return map[string]any{"role": role, "content": content} }
	require.Equal(t, map[string]any{"model": "gpt", "max_tokens": 100.0, "temperature": 0.5, "seed": 2.0,
		"messages": []any{message("system", "Be brief."), message("user", "2+2?")}}, asked)
	require.Equal(t, "fo", ask("2+2?", 2))
	require.Equal(t, []any{message("user", "2+2?")}, asked["messages"])
	reply = `{"choices":[{"message":{"content":"<think>I look.<search>x</search> It says"},"finish_reason":"stop"}]}`
	require.Equal(t, "I look.<search>x</search>", ask("<|im_start|>user\na<|im_end|>\n<|im_start|>assistant\n"+
		"b <|im_start|>c<|im_end|>\n<|im_start|>tool\n1<|im_end|>\n<|im_start|>tool\n2<|im_end|>\n"+
		"<|im_start|>assistant\n<think>", 100))
	require.Equal(t, []any{message("user", "a"), message("assistant", "b <|im_start|>c"),
		message("user", "<tool_response>\n1\n</tool_response>\n<tool_response>\n2\n</tool_response>"),
		message("assistant", "<think>")}, asked["messages"])
	reply = `{"choices":[]}`
	_, err = sampler.Generate(t.Context(), rows(1, 4))
	require.ErrorContains(t, err, "its reply has 0 choices, want 1")

	// A model that reasons takes fewer fields.
	reply = `{"choices":[{"message":{"content":null},"finish_reason":"length"}]}`
	refuse = func(body map[string]any) string {
		switch {
		case body["max_tokens"] != nil:
			return "use max_completion_tokens"
		case body["temperature"] != 1.0:
			return "temperature must be 1"
		case body["seed"] != nil:
			return "seed is unknown"
		}
		return ""
	}
	sampler = open(t, settings)
	require.False(t, sampler.Capabilities().Has(policy.NeedTemperature))
	require.False(t, sampler.Capabilities().Has(policy.NeedGreedy))
	require.Equal(t, 16.0, asked["max_completion_tokens"])
	refuse = func(map[string]any) string { return "no such model" }
	_, err = servers.Open(t.Context(), servers.Options{Servers: []servers.Server{settings}, Score: score})
	require.ErrorContains(t, err, "no such model")
}
