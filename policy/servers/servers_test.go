package servers_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/testing/policytest"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/checkpoint"
	"github.com/ropewalk/ropewalk/policy/servers"
)

// open connects a sampler to servers.
func open(t testing.TB, list ...servers.Server) *servers.Sampler {
	t.Helper()
	s, err := servers.Open(t.Context(), servers.Options{Servers: list, Score: score})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func all(fakes ...*fake) (out []servers.Server) {
	for _, f := range fakes {
		out = append(out, f.settings())
	}
	return out
}

// TestConformance holds a sampler of servers of each kind to the contract of samplers.
func TestConformance(t *testing.T) {
	for _, kind := range []string{servers.KindRopewalk, servers.KindLlama, servers.KindVLLM, servers.KindSGLang} {
		t.Run(kind, func(t *testing.T) {
			f := policytest.SamplerFixture{
				Open: func(t testing.TB) policy.Sampler {
					list := all(newFake(t, kind), newFake(t, kind))
					list[0].Parallel, list[1].Parallel = 64, 64
					return open(t, list...)
				},
				Dir: policyDir(t, 11), Vocab: shape.Vocab, Positions: shape.Positions, Digest: checkpoint.Digest,
			}
			if kind != servers.KindRopewalk { // the others draw thousands of responses in the same way
				f.Only = []string{"capabilities", "publish", "responses", "temperature zero", "stop and budget",
					"typed errors", "context", "close"}
			}
			policytest.Sampler(t, f)
		})
	}
}
