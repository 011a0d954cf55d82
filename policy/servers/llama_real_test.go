package servers_test

import (
	"context"
	"os"
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
	"github.com/ropewalk/ropewalk/policy/gguf"
	"github.com/ropewalk/ropewalk/policy/servers"
	"github.com/ropewalk/ropewalk/policy/tokenizer"
)

// llamaShape is a tiny Llama.
var llamaShape = checkpoint.Shape{Architecture: checkpoint.Llama, Vocab: 349, Hidden: 64, Layers: 2, Heads: 2,
	KVHeads: 1, HeadDim: 32, FFN: 96, Positions: 160, RopeTheta: 10000, NormEps: 1e-5, Pad: -1, EOS: []int32{5}}

func llamaDir(t testing.TB, s checkpoint.Shape, seed uint64) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "policy")
	c, err := checkpoint.Fresh(s, seed)
	require.NoError(t, err)
	for _, w := range c.Weights {
		for i := range w.Data {
			w.Data[i] *= 2 // so that distributions are neither flat nor certain
		}
	}
	c.Extra = map[string][]byte{"tokenizer.json": []byte("{}")}
	_, err = checkpoint.Write(dir, c)
	require.NoError(t, err)
	return dir
}

// TestRealLlamaServerConforms holds a real llama-server, whose weights this package replaces, to the contract.
func TestRealLlamaServerConforms(t *testing.T) {
	_, settings := serverstest.Router(t, serverstest.Exact...)
	policytest.Sampler(t, policytest.SamplerFixture{
		Open: func(t testing.TB) policy.Sampler { return open(t, settings) },
		Dir:  llamaDir(t, llamaShape, 1), Vocab: llamaShape.Vocab, Positions: llamaShape.Positions,
		Digest: checkpoint.Digest,
		Only: []string{"capabilities", "publish", "responses", "temperature zero", "stop and budget", "typed errors",
			"context", "close"},
	})
}

// What a real llama-server returns as log-probabilities is what our own forward pass gives for the same tokens, at any
// temperature, after each of several updates.
func TestRealLlamaServerAgrees(t *testing.T) {
	for _, architecture := range []checkpoint.Architecture{checkpoint.Llama, checkpoint.Qwen2, checkpoint.Qwen3} {
		s := llamaShape
		s.Architecture = architecture
		if architecture == checkpoint.Qwen3 {
			s.Architecture = ""
		}
		t.Run(string(architecture), func(t *testing.T) {
			_, settings := serverstest.Router(t, serverstest.Exact...)
			sampler := open(t, settings)
			ours, err := cpu.Open(cpu.Options{Threads: 1})
			require.NoError(t, err)
			defer ours.Close()
			for seed := range uint64(2) {
				dir := llamaDir(t, s, seed+1)
				require.NoError(t, sampler.Load(t.Context(), policy.RolePolicy, dir, false))
				require.NoError(t, ours.Load(t.Context(), policy.RolePolicy, dir, false))
				for _, temperature := range []float64{1, 0.7, 0} {
					most := apart(t, sampler, ours, temperature, []int32{5, 6, 7})
					t.Logf("version %d, temperature %v: at most %.2g nats apart", seed, temperature, most)
					require.Less(t, most, 1e-3)
				}
			}
			t.Log(sampler.Facts()[0])
		})
	}
}

// apart returns the greatest difference between the sampler's log-probabilities and ours, over responses that end with
// stop tokens, at their budget, and within one token.
func apart(t *testing.T, s policy.Sampler, ours policy.Trainer, temperature float64, stop []int32) (most float64) {
	t.Helper()
	req := policy.GenerateRequest{Role: policy.RolePolicy, Temperature: temperature, Stop: stop}
	for i := range 24 {
		req.Prefixes = append(req.Prefixes, []int32{int32(i), 200, int32(3 * i), 17, 240}[:1+i%5])
		req.Streams = append(req.Streams, uint64(i)*7919)
		req.MaxTokens = append(req.MaxTokens, []int{40, 1, 150}[i%3])
	}
	g, err := s.Generate(t.Context(), req)
	require.NoError(t, err)
	ends := map[policy.Finish]int{}
	var whole [][]int32
	for i, ids := range g.Tokens {
		ends[g.Finish[i]]++
		whole = append(whole, slices.Concat(req.Prefixes[i], ids))
	}
	out, err := ours.Forward(t.Context(), policy.ForwardRequest{Role: policy.RolePolicy, Sequences: whole,
		Temperature: max(temperature, 0.001), Outputs: policy.OutLogProb})
	if temperature == 0 { // log-probabilities are then those of temperature 1
		out, err = ours.Forward(t.Context(), policy.ForwardRequest{Role: policy.RolePolicy, Sequences: whole,
			Temperature: 1, Outputs: policy.OutLogProb})
	}
	require.NoError(t, err)
	for i, lps := range g.LogProbs {
		for j, v := range lps {
			most = max(most, abs(float64(v)-float64(out.LogProbs[i][len(req.Prefixes[i])+j])))
		}
	}
	if temperature > 0 {
		require.Positive(t, ends[policy.FinishStop], "some responses end with a stop token")
	}
	require.Positive(t, ends[policy.FinishLength])
	return most
}

func abs(x float64) float64 { return max(x, -x) }

// With its default settings llama-server keeps keys and values in half precision: the differences are reported, and
// the tolerance of a recipe allows for them.
func TestRealLlamaServersDefaults(t *testing.T) {
	_, settings := serverstest.Router(t)
	s := open(t, settings)
	ours, err := cpu.Open(cpu.Options{Threads: 1})
	require.NoError(t, err)
	defer ours.Close()
	dir := llamaDir(t, llamaShape, 1)
	require.NoError(t, s.Load(t.Context(), policy.RolePolicy, dir, false))
	require.NoError(t, ours.Load(t.Context(), policy.RolePolicy, dir, false))
	t.Logf("at most %.2g nats apart", apart(t, s, ours, 1, []int32{5}))
}

// A real llama-server that is killed with -9 in the middle loses its unfinished rows alone.
func TestRealLlamaServerKilled(t *testing.T) {
	a, first := serverstest.Router(t, serverstest.Exact...)
	_, second := serverstest.Router(t, serverstest.Exact...)
	s := open(t, first, second)
	require.NoError(t, s.Load(t.Context(), policy.RolePolicy, llamaDir(t, llamaShape, 1), false))
	req := rows(60, 100)
	time.AfterFunc(150*time.Millisecond, a.Kill)
	g, err := s.Generate(t.Context(), req)
	require.NoError(t, err)
	for _, ids := range g.Tokens {
		require.Len(t, ids, 100)
	}
	require.ErrorContains(t, s.Away(), a.URL)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	require.NoError(t, s.Load(ctx, policy.RolePolicy, llamaDir(t, llamaShape, 2), false), "the other one goes on alone")
}

// Streamed responses of a real llama-server agree with our own forward pass, too, also where one server was killed in
// the middle of its streams and the other has continued them.
func TestRealLlamaServerStreams(t *testing.T) {
	a, first := serverstest.Router(t, serverstest.Exact...)
	_, second := serverstest.Router(t, serverstest.Exact...)
	first.StreamFrom, second.StreamFrom = 1, 1
	s, dir := open(t, first, second), llamaDir(t, llamaShape, 1)
	require.NoError(t, s.Load(t.Context(), policy.RolePolicy, dir, false))
	ours, err := cpu.Open(cpu.Options{Threads: 1})
	require.NoError(t, err)
	defer ours.Close()
	require.NoError(t, ours.Load(t.Context(), policy.RolePolicy, dir, false))
	for _, temperature := range []float64{1, 0.7, 0} {
		require.Less(t, apart(t, s, ours, temperature, []int32{5, 6, 7}), 1e-3)
	}
	time.AfterFunc(150*time.Millisecond, a.Kill)
	g, err := s.Generate(t.Context(), rows(60, 100))
	require.NoError(t, err)
	require.ErrorContains(t, s.Away(), a.URL)
	checkModel(t, dir, rows(60, 100), g)
}

// A real llama-server's log-probabilities are those of what the limits of sampling leave.
func TestRealLlamaServerCutDistributions(t *testing.T) {
	_, settings := serverstest.Router(t, serverstest.Exact...)
	s, dir := open(t, settings), llamaDir(t, llamaShape, 1)
	require.NoError(t, s.Load(t.Context(), policy.RolePolicy, dir, false))
	for _, limit := range limits {
		checkCut(t, s, dir, llamaShape.Vocab, 1, limit, 24)
		checkCut(t, s, dir, llamaShape.Vocab, 0.7, limit, 24)
	}
}

// A llama-server with a file of others, whose tokens are bytes, leaves out the log-probabilities of tokens that are no
// whole characters, and of stop texts: they are asked for.
func TestRealLlamaServerWithAFileOfOthers(t *testing.T) {
	tokens, err := tokenizer.New([]string{"<|end|>", "<call>", "</call>"})
	require.NoError(t, err)
	s := llamaShape
	s.Vocab = tokens.VocabSize()
	end, _ := tokens.ID("<|end|>")
	call, _ := tokens.ID("</call>")
	s.EOS = []int32{end}
	dir := llamaDir(t, s, 1)
	for name, text := range tokens.Files() {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), text, 0o644))
	}
	c, err := checkpoint.Open(dir, false)
	require.NoError(t, err)
	defer c.Close()
	m := gguf.Model{Name: "of others", Checkpoint: c, Dtype: checkpoint.F32}
	symbols, plain := tokens.Symbols()
	m.Vocabulary = gguf.Vocabulary{Tokens: symbols, Split: "default", Start: -1}
	for id := plain; id < len(symbols); id++ {
		m.Vocabulary.Added = append(m.Vocabulary.Added, int32(id))
	}
	path := filepath.Join(t.TempDir(), "model.gguf")
	f, err := os.Create(path)
	require.NoError(t, err)
	require.NoError(t, gguf.Write(f, m))
	require.NoError(t, f.Close())
	p := serverstest.Start(t, append([]string{"-m", path}, serverstest.Exact...)...)
	settings := servers.Server{Kind: servers.KindLlama, URL: p.URL, Parallel: 4, Seconds: 60}
	sampler := open(t, settings)
	require.False(t, sampler.Capabilities().Has(policy.NeedNewWeights))
	t.Log(sampler.Facts()[0])
	ours, err := cpu.Open(cpu.Options{Threads: 1})
	require.NoError(t, err)
	defer ours.Close()
	require.NoError(t, sampler.Load(t.Context(), policy.RolePolicy, dir, false))
	require.NoError(t, ours.Load(t.Context(), policy.RolePolicy, dir, false))
	for _, temperature := range []float64{1, 0.7} {
		most := apart(t, sampler, ours, temperature, []int32{call, 65, 66}) // its own end does not end a response
		t.Logf("temperature %v: at most %.2g nats apart", temperature, most)
		require.Less(t, most, 1e-3)
	}
	err = sampler.Load(t.Context(), policy.RolePolicy, llamaDir(t, s, 2), false)
	require.ErrorIs(t, err, policy.ErrWrongVersion)
	settings.Folder = t.TempDir()
	_, err = servers.Open(t.Context(), servers.Options{Servers: []servers.Server{settings}, Score: score})
	require.ErrorContains(t, err, "it takes no new weights; start llama-server with --models-dir")
}
