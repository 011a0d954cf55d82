package tinker_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/testing/tinkertest"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/tinker"
)

// skyrlOptions are those of an engine on a running server.
func skyrlOptions(t testing.TB, p *tinkertest.Real, dir string) tinker.Options {
	return tinker.Options{Server: tinker.Server{URL: p.URL, BaseModel: dir, Seconds: 900, Verify: true,
		Tolerance: 1e-4}, LoRA: lora, Scratch: t.TempDir(), Score: score}
}

// TestRealSkyRL trains at a real server: its convention is found out, checkpoints hold the adapter, which our own
// forward pass agrees with, and can be loaded again.
func TestRealSkyRL(t *testing.T) {
	dir, shape := tinkertest.Model(t, 1)
	p := tinkertest.Start(t, dir)
	e, err := tinker.Open(t.Context(), skyrlOptions(t, p, dir), shape)
	require.NoError(t, err)
	defer e.Close()
	t.Log(e.Facts())
	require.NoError(t, e.Load(t.Context(), policy.RolePolicy, dir, true))
	t.Log(step(t, e, 11, 23, 5))
	to := filepath.Join(t.TempDir(), "saved")
	_, err = e.Save(t.Context(), policy.RolePolicy, to)
	require.NoError(t, err)
	rows := [][]int32{row(30), row(17)}
	want := forward(t, e, rows, false).LogProbs
	for i, ids := range rows {
		own, err := score(t.Context(), to, ids)
		require.NoError(t, err)
		for k, v := range own {
			require.InDelta(t, v, want[i][k+1], 1e-4, "row %d, token %d", i, k+1)
		}
	}
	require.NoError(t, e.Load(t.Context(), policy.RolePolicy, to, true), "the optimiser's state is there, too")

	// Steps that raise the log-probabilities of some tokens do so.
	learn := func() (sum float64) {
		out := forward(t, e, rows, true)
		c := policy.Cotangents{}
		for _, lps := range out.LogProbs {
			values := make([]float32, len(lps))
			for k, v := range lps {
				values[k], sum = -0.02, sum+float64(v)
			}
			c.LogProbs = append(c.LogProbs, values)
		}
		require.NoError(t, e.Backward(t.Context(), policy.RolePolicy, out.Kept, c))
		_, err := e.Step(t.Context(), policy.RolePolicy, adam)
		require.NoError(t, err)
		return sum / 45
	}
	begin := learn()
	for range 8 {
		learn()
	}
	end := learn()
	t.Logf("ten steps raise the mean log-probability from %.3f to %.3f", begin, end)
	require.Greater(t, end, begin+0.5)
	prefixes := [][]int32{row(9), row(4)}
	g, err := e.Generate(t.Context(), policy.GenerateRequest{Role: policy.RolePolicy, Prefixes: prefixes,
		Streams: []uint64{1, 2}, MaxTokens: []int{8, 3}, Temperature: 1, Stop: []int32{3}})
	require.NoError(t, err)
	for i, ids := range g.Tokens {
		whole := append(append([]int32(nil), prefixes[i]...), ids...)
		lps := forward(t, e, [][]int32{whole}, false).LogProbs[0]
		for k, v := range g.LogProbs[i] {
			require.InDelta(t, lps[len(whole)-len(ids)+k], v, 1e-4, "sampled from the newest weights")
		}
	}
}
