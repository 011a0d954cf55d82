package cpu

import (
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/checkpoint"
)

// A saved model and its optimiser's state are written from the engine's own memory and read into it: neither way
// holds a second copy.
func TestCheckpointsAreNotCopied(t *testing.T) {
	shape := checkpoint.Shape{
		Vocab: 4096, Hidden: 128, Layers: 8, Heads: 4, KVHeads: 4, HeadDim: 32, FFN: 512, Positions: 64,
		RopeTheta: 5000, NormEps: 1e-6, EOS: []int32{2}, Pad: 0,
	}
	params := shape.Params()
	c, err := checkpoint.Fresh(shape, 3)
	require.NoError(t, err)
	c.Optimizer = &checkpoint.Optimizer{Step: 3, Names: []string{"exp_avg", "exp_avg_sq"},
		States: [][]checkpoint.Tensor{c.Weights, c.Weights}}
	dir := filepath.Join(t.TempDir(), "model")
	digest, err := checkpoint.Write(dir, c)
	require.NoError(t, err)
	e, err := open[float32](Options{Threads: 1, BLAS: blasGonum})
	require.NoError(t, err)
	defer e.Close()

	allocated := func(f func()) int64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		f()
		runtime.ReadMemStats(&after)
		return int64(after.TotalAlloc - before.TotalAlloc)
	}
	const least = 8 << 20 // pieces, headers and the worker's own
	require.Greater(t, 4*params, int64(least), "the model is large enough to tell")
	loading := allocated(func() { err = e.Load(t.Context(), policy.RolePolicy, dir, true) })
	require.NoError(t, err)
	require.Less(t, loading, 12*params+least, "of %d bytes that the engine keeps", 12*params)
	var saved string
	again := filepath.Join(t.TempDir(), "again")
	saving := allocated(func() { saved, err = e.Save(t.Context(), policy.RolePolicy, again) })
	require.NoError(t, err)
	require.Equal(t, digest, saved)
	require.Less(t, saving, int64(least))
}
