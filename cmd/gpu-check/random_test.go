package main

import (
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/policy/checkpoint"
)

func TestRandomModel(t *testing.T) {
	s := checkpoint.Shape{Vocab: 311, Hidden: 64, Layers: 2, Heads: 4, KVHeads: 2, HeadDim: 16, FFN: 96, Positions: 64,
		RopeTheta: 10000, NormEps: 1e-6, Pad: -1}
	dir, again := filepath.Join(t.TempDir(), "model"), filepath.Join(t.TempDir(), "again")
	require.NoError(t, randomModel(dir, s, 7))
	c, err := checkpoint.Read(dir, false)
	require.NoError(t, err)
	require.Equal(t, s, c.Shape)
	for _, w := range c.Weights {
		want := 0.02
		switch {
		case len(w.Dims) == 1:
			for _, x := range w.Data {
				require.EqualValues(t, 1, x, w.Name)
			}
			continue
		case strings.HasSuffix(w.Name, ".o_proj.weight"), strings.HasSuffix(w.Name, ".down_proj.weight"):
			want /= 2 // √(2·2 layers)
		}
		var sum, squares float64
		for _, x := range w.Data {
			require.Zero(t, math.Float32bits(x)&0xffff, "a number of bfloat16")
			sum, squares = sum+float64(x), squares+float64(x)*float64(x)
		}
		n := float64(len(w.Data))
		require.InEpsilon(t, want, math.Sqrt(squares/n), 0.1, w.Name)
		require.Less(t, math.Abs(sum/n), 5*want/math.Sqrt(n), w.Name)
	}
	require.NoError(t, randomModel(again, s, 7))
	first, err := checkpoint.Digest(dir)
	require.NoError(t, err)
	second, err := checkpoint.Digest(again)
	require.NoError(t, err)
	require.Equal(t, first, second)
}
