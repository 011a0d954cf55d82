package serve_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/serve"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/checkpoint"
	"github.com/ropewalk/ropewalk/policy/cpu"
	"github.com/ropewalk/ropewalk/policy/policytest"
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

func samplerOf(t testing.TB, f *fixture) policy.Sampler {
	t.Helper()
	s, err := servers.Open(t.Context(), servers.Options{
		Servers: []servers.Server{{Kind: servers.KindRopewalk, URL: f.http.URL, Folder: t.TempDir(), Parallel: 64}},
		Score:   servers.ScoreWith(func() (policy.Engine, error) { return cpu.Open(cpu.Options{Threads: 2}) }),
	})
	require.NoError(t, err)
	return s
}
