package torch

import (
	"math"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/testing/pythontest"
	"github.com/ropewalk/ropewalk/internal/testing/tinkertest"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/checkpoint"
	"github.com/ropewalk/ropewalk/policy/tinker"
	"github.com/ropewalk/ropewalk/rl/optimizer"
)

// TestRealSkyRLTakesTheSameStep: from the same adapter and the same cotangents, SkyRL's server and this engine take the
// same step: norms and log-probabilities agree.
func TestRealSkyRLTakesTheSameStep(t *testing.T) {
	tinkertest.Python(t)
	pythontest.Need(t, "TORCH", "peft")
	dir, shape := tinkertest.Model(t, 1)
	p := tinkertest.Start(t, dir)
	adapter := tinker.LoRA{Rank: 4, Alpha: tinker.Alpha, Targets: projections, Seed: 7}
	remote, err := tinker.Open(t.Context(), tinker.Options{LoRA: adapter, Scratch: t.TempDir(),
		Server: tinker.Server{URL: p.URL, BaseModel: dir, Seconds: 900, Tolerance: 1e-4}}, shape)
	require.NoError(t, err)
	defer remote.Close()

	// A step that moves nothing shows the adapter that the seed gives.
	require.NoError(t, remote.Load(t.Context(), policy.RolePolicy, dir, true))
	stepOn(t, remote, shape.Vocab, 0)
	begin := filepath.Join(t.TempDir(), "begin")
	_, err = remote.Save(t.Context(), policy.RolePolicy, begin)
	require.NoError(t, err)
	require.NoError(t, remote.Load(t.Context(), policy.RolePolicy, dir, true))
	there := stepOn(t, remote, shape.Vocab, 1e-3)

	here, _ := openReal(t, func(o *Options) {
		o.LoRA = &LoRA{Rank: adapter.Rank, Alpha: adapter.Alpha, Targets: adapter.Targets}
	})
	require.NoError(t, here.Load(t.Context(), policy.RolePolicy, begin, false))
	own := stepOn(t, here, shape.Vocab, 1e-3)
	require.InEpsilon(t, own.GradNorm, there.GradNorm, 1e-3)
	t.Logf("gradient norms: %.7g there, %.7g here", there.GradNorm, own.GradNorm)

	rows := randomRows(5, shape.Vocab, 40, 7, 33)
	ask := policy.ForwardRequest{Role: policy.RolePolicy, Sequences: rows, Temperature: 1, Outputs: policy.OutLogProb}
	a, err := remote.Forward(t.Context(), ask)
	require.NoError(t, err)
	b, err := here.Forward(t.Context(), ask)
	require.NoError(t, err)
	require.NoError(t, here.Load(t.Context(), policy.RolePolicy, begin, false))
	before, err := here.Forward(t.Context(), ask)
	require.NoError(t, err)
	most, moved := 0.0, 0.0
	for i := range rows {
		for k := range rows[i] {
			most = max(most, math.Abs(float64(a.LogProbs[i][k])-float64(b.LogProbs[i][k])))
			moved = max(moved, math.Abs(float64(b.LogProbs[i][k])-float64(before.LogProbs[i][k])))
		}
	}
	t.Logf("after the step, which moves log-probabilities by up to %.3g, the two are at most %.2g nats apart", moved,
		most)
	require.Greater(t, moved, 0.05, "the step moves something")
	require.Less(t, most, 1e-3)

	saved := filepath.Join(t.TempDir(), "saved")
	_, err = remote.Save(t.Context(), policy.RolePolicy, saved)
	require.NoError(t, err)
	require.NoError(t, here.Load(t.Context(), policy.RolePolicy, saved, false), "the folder is one of this engine's")
	again, err := here.Forward(t.Context(), ask)
	require.NoError(t, err)
	for i := range rows {
		for k := range rows[i] {
			require.InDelta(t, a.LogProbs[i][k], again.LogProbs[i][k], 1e-4)
		}
	}
	c, err := checkpoint.Open(saved, false)
	require.NoError(t, err)
	require.NoError(t, c.Close())
}

// stepOn takes one step in two passes, with cotangents of both signs.
func stepOn(t *testing.T, e policy.Trainer, vocab int, rate float64) policy.StepStats {
	t.Helper()
	for pass, lengths := range [][]int{{20, 9}, {31}} {
		rows := randomRows(uint64(pass), vocab, lengths...)
		out, err := e.Forward(t.Context(), policy.ForwardRequest{Role: policy.RolePolicy, Sequences: rows,
			Temperature: 1, Outputs: policy.OutLogProb, Keep: true})
		require.NoError(t, err)
		c := policy.Cotangents{}
		for i, row := range rows {
			values := make([]float32, len(row))
			for k := range values {
				values[k] = float32(math.Sin(float64(3*k+7*i+pass))) / 50
			}
			c.LogProbs = append(c.LogProbs, values)
		}
		require.NoError(t, e.Backward(t.Context(), policy.RolePolicy, out.Kept, c))
	}
	stats, err := e.Step(t.Context(), policy.RolePolicy, policy.StepOptions{LR: rate,
		Rule: optimizer.AdamW{Beta1: 0.9, Beta2: 0.95, Epsilon: 1e-6}})
	require.NoError(t, err)
	return stats
}
