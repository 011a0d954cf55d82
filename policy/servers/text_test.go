package servers_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/checkpoint"
	"github.com/ropewalk/ropewalk/policy/servers"
	"github.com/ropewalk/ropewalk/policy/tokenizer"
)

// A server of text alone gets texts and gives texts: it can be evaluated, and no policy can be trained with it.
func TestTextAlone(t *testing.T) {
	tokens, err := tokenizer.New([]string{"<|end|>", "<call>"})
	require.NoError(t, err)
	s := shape
	s.Vocab = tokens.VocabSize()
	dir := filepath.Join(t.TempDir(), "policy")
	files := map[string][]byte{"tokenizer.json": tokens.Files()["tokenizer.json"]}
	require.NoError(t, checkpoint.Init(dir, s, 1, files))
	var asked map[string]any
	reply := `{"model":"gpt","choices":[{"text":"four","finish_reason":"stop"}]}`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		require.Equal(t, "/v1/completions", r.URL.Path)
		asked = nil
		require.NoError(t, json.NewDecoder(r.Body).Decode(&asked))
		_, _ = w.Write([]byte(reply))
	}))
	t.Cleanup(server.Close)
	sampler := open(t, servers.Server{Kind: servers.KindOpenAI, URL: server.URL, Model: "gpt", Attempts: 1})
	can := sampler.Capabilities()
	for _, x := range []policy.Capability{policy.NeedTokenIDs, policy.NeedLogProbs, policy.NeedNewWeights} {
		require.False(t, can.Has(x), x)
	}
	require.True(t, can.Has(policy.NeedGreedy))
	require.NoError(t, sampler.Load(t.Context(), policy.RolePolicy, dir, false))
	end, _ := tokens.ID("<|end|>")
	call, _ := tokens.ID("<call>")
	ask := func(budget int) policy.Generated {
		t.Helper()
		g, err := sampler.Generate(t.Context(), policy.GenerateRequest{Role: policy.RolePolicy, Temperature: 0.5,
			Prefixes: [][]int32{tokens.Encode("2+2?<|end|>")}, Streams: []uint64{5}, MaxTokens: []int{budget},
			Stop: []int32{end}})
		require.NoError(t, err)
		require.Nil(t, g.LogProbs)
		require.Nil(t, g.Entropies)
		return g
	}
	g := ask(20)
	require.Equal(t, "2+2?<|end|>", asked["prompt"])
	require.Equal(t, []any{"<|end|>"}, asked["stop"])
	require.Equal(t, "four<|end|>", tokens.Decode(g.Tokens[0]), "the stop token is part of the response")
	require.Equal(t, policy.FinishStop, g.Finish[0])
	g = ask(2)
	require.Len(t, g.Tokens[0], 2)
	require.Equal(t, policy.FinishLength, g.Finish[0])
	reply = `{"model":"gpt","choices":[{"text":"<call>4","finish_reason":"length"}]}`
	g = ask(20)
	require.Equal(t, call, g.Tokens[0][0])
	require.Equal(t, policy.FinishLength, g.Finish[0])
	reply = `{"model":"gpt","choices":[{"text":"","finish_reason":"length"}]}`
	require.Equal(t, []int32{end}, ask(20).Tokens[0], "a response has a token at least")

	require.NoError(t, os.WriteFile(filepath.Join(dir, "tokenizer.json"), []byte("{}"), 0o644))
	err = sampler.Load(t.Context(), policy.RolePolicy, dir, false)
	require.ErrorContains(t, err, "it takes text, and the folder's tokenizer.json cannot be read")
}
