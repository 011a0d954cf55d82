package serve_test

import (
	"context"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/serve"
	"github.com/ropewalk/ropewalk/internal/testing/policytest"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/checkpoint"
	"github.com/ropewalk/ropewalk/policy/cpu"
	"github.com/ropewalk/ropewalk/policy/servers"
)

// TestSamplerOverHTTP holds a sampler that asks this server to the contract of samplers: whatever passes through HTTP
// is what the engine behind it generates.
func TestSamplerOverHTTP(t *testing.T) {
	dir := own(t)
	m, err := serve.ReadModel(dir)
	require.NoError(t, err)
	policytest.Sampler(t, policytest.SamplerFixture{
		Open: func(t testing.TB) policy.Sampler {
			return samplerOf(t, start(t, published0(t, dir), func(o *serve.Options) {
				o.AllowLoad, o.Queue, o.Rows = true, 1000, 32
				o.Tokens = 32 * 64
			}))
		},
		Dir: dir, Vocab: m.Tokens.VocabSize(), Positions: 512, Digest: checkpoint.Digest,
	})
}

// published0 is the folder of another model of the same shape, which the server has before the first Load.
func published0(t testing.TB, dir string) string {
	files := map[string][]byte{}
	for _, name := range []string{"tokenizer.json", "tokenizer_config.json"} {
		if text, err := os.ReadFile(dir + "/" + name); err == nil {
			files[name] = text
		}
	}
	c, err := checkpoint.Read(dir, false)
	require.NoError(t, err)
	return writeModel(t, files, c.Shape.Vocab, c.Shape.EOS[0], 77)
}

// crowd is an engine that notes how many rows a batch has had at once, and how many tokens they had reserved.
type crowd struct {
	policy.Batcher
	rows, held int
}

func (c *crowd) Batch(ctx context.Context, role policy.Role, o policy.BatchOptions) (policy.Batch, error) {
	b, err := c.Batcher.Batch(ctx, role, o)
	return &crowded{b, c}, err
}

type crowded struct {
	policy.Batch
	in *crowd
}

func (b *crowded) Step(ctx context.Context) ([]policy.BatchEvent, error) {
	u := b.Usage()
	b.in.rows, b.in.held = max(b.in.rows, u.Rows), max(b.in.held, u.Held)
	return b.Batch.Step(ctx)
}

// TestAFullCacheMakesResponsesWait: where the keys and values of only one response have room, all others wait in the
// server, and get the same tokens.
func TestAFullCacheMakesResponsesWait(t *testing.T) {
	dir := own(t)
	req := policy.GenerateRequest{Role: policy.RolePolicy, Temperature: 1}
	for i := range 12 {
		prefix := make([]int32, 20+i)
		for k := range prefix {
			prefix[k] = int32(7*i + 3*k)
		}
		req.Prefixes, req.Streams = append(req.Prefixes, prefix), append(req.Streams, uint64(i))
		req.MaxTokens = append(req.MaxTokens, 60)
	}
	var want policy.Generated
	for _, tokens := range []int{1 << 12, 96} {
		engine := &crowd{}
		f := start(t, dir, func(o *serve.Options) {
			engine.Batcher = o.Engine
			o.AllowLoad, o.Rows, o.Tokens, o.Engine = true, 32, tokens, engine
		})
		s := samplerOf(t, f)
		require.Equal(t, tokens, f.server.Usage().Tokens)
		require.NoError(t, s.Load(t.Context(), policy.RolePolicy, dir, false))
		got, err := s.Generate(t.Context(), req)
		require.NoError(t, err)
		if want.Tokens != nil {
			require.Equal(t, want, got)
		}
		want = got
		f.server.Close()
		require.LessOrEqual(t, engine.held, tokens)
		require.Equal(t, tokens == 96, engine.rows == 1, "%d rows at once in %d tokens", engine.rows, tokens)
	}
}

// samplerOf asks the server for all responses at once, whatever it says about its room.
func samplerOf(t testing.TB, f *fixture) policy.Sampler {
	t.Helper()
	s, err := servers.Open(t.Context(), servers.Options{
		Servers: []servers.Server{{Kind: servers.KindRopewalk, URL: f.http.URL, Folder: t.TempDir(), Parallel: 64,
			Tokens: 1 << 20}},
		Score: servers.ScoreWith(func() (policy.Engine, error) { return cpu.Open(cpu.Options{Threads: 2}) }),
	})
	require.NoError(t, err)
	return s
}
