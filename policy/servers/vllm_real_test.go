package servers_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/testing/policytest"
	"github.com/ropewalk/ropewalk/internal/testing/serverstest"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/checkpoint"
	"github.com/ropewalk/ropewalk/policy/cpu"
	"github.com/ropewalk/ropewalk/policy/servers"
	"github.com/ropewalk/ropewalk/policy/tokenizer"
)

// vllmShape is llamaShape with Qwen3's architecture. Its sequences are longer than the blocks of vLLM's prefix cache.
var vllmShape = func() checkpoint.Shape {
	s := llamaShape
	s.Architecture, s.Positions = "", 320
	return s
}()

// untied writes a model as vLLM needs it, with an output head of its own.
func untied(t testing.TB, s checkpoint.Shape, seed uint64) string {
	t.Helper()
	c, err := checkpoint.Open(llamaDir(t, s, seed), false)
	require.NoError(t, err)
	defer c.Close()
	model, err := c.Untie()
	require.NoError(t, err)
	model.Extra = map[string][]byte{}
	for name, text := range bytesAndMore(t, s.Vocab).Files() { // vLLM needs a tokenizer to name tokens in replies
		model.Extra[name] = text
	}
	dir := filepath.Join(t.TempDir(), "untied")
	require.NoError(t, checkpoint.WriteModel(dir, model, checkpoint.F32))
	return dir
}

// bytesAndMore is a tokenizer of so many tokens.
func bytesAndMore(t testing.TB, vocab int) *tokenizer.Tokenizer {
	t.Helper()
	var added []string
	for i := range vocab - 256 {
		added = append(added, fmt.Sprintf("<%d>", i))
	}
	tokens, err := tokenizer.New(added)
	require.NoError(t, err)
	require.Equal(t, vocab, tokens.VocabSize())
	return tokens
}

// TestRealVLLM asks real servers on this processor. One of them gives the log-probabilities of what was sampled from,
// the other those of the model. A server takes half a minute or more to start, so the parts share them, in this order.
func TestRealVLLM(t *testing.T) {
	serverstest.FindVLLM(t)
	base := untied(t, vllmShape, 100)
	a, processed := serverstest.VLLM(t, base, "--logprobs-mode", "processed_logprobs")
	b, raw := serverstest.VLLM(t, base, "--logprobs-mode", "raw_logprobs")
	a.Wait(t)
	b.Wait(t)
	t.Run("conforms", func(t *testing.T) {
		policytest.Sampler(t, policytest.SamplerFixture{
			Open: func(t testing.TB) policy.Sampler { return open(t, processed) },
			Dir:  llamaDir(t, vllmShape, 1), Vocab: vllmShape.Vocab, Positions: vllmShape.Positions,
			Digest: checkpoint.Digest, Only: []string{"capabilities", "publish", "responses", "temperature zero",
				"stop and budget", "typed errors", "context", "close"},
		})
	})
	t.Run("agrees", func(t *testing.T) { vllmAgrees(t, processed, []float64{1, 0.7, 0}) })
	t.Run("agrees raw", func(t *testing.T) { vllmAgrees(t, raw, []float64{1, 0}) })
	t.Run("kinds", func(t *testing.T) { vllmKinds(t, processed, raw) })
	t.Run("cut distributions", func(t *testing.T) {
		s, dir := open(t, processed), llamaDir(t, vllmShape, 1)
		require.NoError(t, s.Load(t.Context(), policy.RolePolicy, dir, false))
		for _, limit := range limits {
			checkCut(t, s, dir, vllmShape.Vocab, 0.7, limit, 24)
		}
	})
	t.Run("prefix cache", func(t *testing.T) { vllmPrefixCache(t, processed) })
	t.Run("reload after every step", func(t *testing.T) { vllmReloads(t, processed) })
	t.Run("streams", func(t *testing.T) {
		settings := processed
		settings.StreamFrom = 1
		vllmAgrees(t, settings, []float64{1, 0.7, 0})
	})
	t.Run("killed", func(t *testing.T) { vllmKilled(t, a, processed, raw) })
}

// vllmAgrees compares a server's log-probabilities with those of our own forward pass for the same tokens, after each
// of two updates.
func vllmAgrees(t *testing.T, settings servers.Server, temperatures []float64) {
	s := open(t, settings)
	ours, err := cpu.Open(cpu.Options{Threads: 1})
	require.NoError(t, err)
	defer ours.Close()
	for seed := range uint64(2) {
		dir := llamaDir(t, vllmShape, seed+1)
		require.NoError(t, s.Load(t.Context(), policy.RolePolicy, dir, false))
		require.NoError(t, ours.Load(t.Context(), policy.RolePolicy, dir, false))
		for _, temperature := range temperatures {
			most := apart(t, s, ours, temperature, []int32{5, 6, 7})
			t.Logf("version %d, temperature %v: at most %.2g nats apart", seed, temperature, most)
			require.Less(t, most, 1e-3)
		}
	}
	t.Log(s.Facts()[0])
}

// vllmKinds: what a server's log-probabilities are of is found out, and decides what it offers.
func vllmKinds(t *testing.T, processed, raw servers.Server) {
	s := open(t, processed)
	require.Equal(t, servers.LogProbsSampling, s.Facts()[0].LogProbs)
	can := s.Capabilities()
	require.Equal(t, []bool{true, true, true, true}, []bool{can.Temperature, can.TopK, can.TopP, can.MinP})
	s = open(t, raw)
	require.Equal(t, servers.LogProbsModel, s.Facts()[0].LogProbs)
	can = s.Capabilities()
	require.Equal(t, []bool{false, false, false, false}, []bool{can.Temperature, can.TopK, can.TopP, can.MinP})
	require.True(t, can.Has(policy.NeedGreedy))
	require.NoError(t, s.Load(t.Context(), policy.RolePolicy, llamaDir(t, vllmShape, 1), false))
	req := rows(1, 4)
	req.Temperature = 0.7
	_, err := s.Generate(t.Context(), req)
	require.ErrorIs(t, err, policy.ErrBadRequest)
}

// vllmPrefixCache: a server that was told to read other weights goes on with what it has computed with the old ones.
// The sampler's requests are not answered from that.
func vllmPrefixCache(t *testing.T, settings servers.Server) {
	s := open(t, settings)
	first, second := llamaDir(t, vllmShape, 11), llamaDir(t, vllmShape, 12)
	require.NoError(t, s.Load(t.Context(), policy.RolePolicy, first, false))
	prefix := make([]int32, 260) // two blocks of the cache, and more
	for i := range prefix {
		prefix[i] = int32(7 * i % vllmShape.Vocab)
	}
	byHand := map[string]any{"model": "policy", "prompt": prefix, "max_tokens": 1, "temperature": 0, "logprobs": 0,
		"return_token_ids": true, "ignore_eos": true}
	req := policy.GenerateRequest{Role: policy.RolePolicy, Prefixes: [][]int32{prefix}, Streams: []uint64{1},
		MaxTokens: []int{1}}
	off := func(id int32, logProb float64) float64 {
		return abs(logProb - leaves(t, second, vllmShape.Vocab, prefix, 1, policy.Truncation{})[id])
	}
	ask := func() (int32, float64) {
		var reply struct {
			Choices []struct {
				IDs      []int32 `json:"token_ids"`
				LogProbs struct {
					Values []float64 `json:"token_logprobs"`
				} `json:"logprobs"`
			} `json:"choices"`
		}
		require.NoError(t, json.Unmarshal(post(t, settings.URL+"/v1/completions", byHand), &reply))
		return reply.Choices[0].IDs[0], reply.Choices[0].LogProbs.Values[0]
	}
	ask()
	_, err := s.Generate(t.Context(), req)
	require.NoError(t, err)

	post(t, settings.URL+"/collective_rpc", map[string]any{"method": "reload_weights", "kwargs": map[string]any{
		"weights_path": untied(t, vllmShape, 12)}})
	stale := off(ask())
	t.Logf("without a reset of its prefix cache the server is %.2g nats off", stale)
	require.Greater(t, stale, 1e-3, "vLLM keeps what it has computed with other weights")
	require.NoError(t, s.Load(t.Context(), policy.RolePolicy, second, false))
	g, err := s.Generate(t.Context(), req)
	require.NoError(t, err)
	require.Less(t, off(g.Tokens[0][0], float64(g.LogProbs[0][0])), 1e-3)
}

// post sends a request that must be answered with 200.
func post(t *testing.T, url string, body any) []byte {
	t.Helper()
	data, err := json.Marshal(body)
	require.NoError(t, err)
	resp, err := http.Post(url, "application/json", bytes.NewReader(data))
	require.NoError(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, resp.StatusCode, "%s", text)
	return text
}

// vllmReloads: after each of many updates, the server's values are those of the new weights.
func vllmReloads(t *testing.T, settings servers.Server) {
	settings.Tolerance = 1e-3
	s := open(t, settings)
	ours, err := cpu.Open(cpu.Options{Threads: 1})
	require.NoError(t, err)
	defer ours.Close()
	began := time.Now()
	for step := range uint64(10) {
		dir := llamaDir(t, vllmShape, 20+step)
		require.NoError(t, s.Load(t.Context(), policy.RolePolicy, dir, false))
		require.NoError(t, ours.Load(t.Context(), policy.RolePolicy, dir, false))
		g, err := s.Generate(t.Context(), rows(2, 8))
		require.NoError(t, err)
		var whole [][]int32
		for i, ids := range g.Tokens {
			whole = append(whole, slices.Concat(rows(2, 8).Prefixes[i], ids))
		}
		out, err := ours.Forward(t.Context(), policy.ForwardRequest{Role: policy.RolePolicy, Sequences: whole,
			Temperature: 1, Outputs: policy.OutLogProb})
		require.NoError(t, err)
		for i, lps := range g.LogProbs {
			for j, v := range lps {
				require.InDelta(t, out.LogProbs[i][3+j], v, 1e-3, "step %d", step)
			}
		}
	}
	t.Logf("10 updates in %v", time.Since(began).Round(time.Millisecond))
}

// vllmKilled: a server that is killed with -9 in the middle loses no token that has come: the other server goes on
// after it.
func vllmKilled(t *testing.T, p *serverstest.Process, first, second servers.Server) {
	first.Parallel, second.Parallel, first.StreamFrom, second.StreamFrom = 4, 4, 1, 1
	s, dir := open(t, first, second), llamaDir(t, vllmShape, 1)
	require.NoError(t, s.Load(t.Context(), policy.RolePolicy, dir, false))
	time.AfterFunc(time.Second, p.Kill)
	g, err := s.Generate(t.Context(), rows(60, 100))
	require.NoError(t, err)
	checkModel(t, dir, rows(60, 100), g)
	require.ErrorContains(t, s.Away(), p.URL)
	require.NoError(t, s.Load(t.Context(), policy.RolePolicy, llamaDir(t, vllmShape, 2), false),
		"the other one goes on alone")
}
