package tinkertest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/policy/checkpoint"
	"github.com/ropewalk/ropewalk/policy/tokenizer"
)

// Model writes a tiny Qwen3 with a tokenizer that transformers reads, which SkyRL can serve.
func Model(t testing.TB, seed uint64) (dir string, s checkpoint.Shape) {
	t.Helper()
	tokens, err := tokenizer.New([]string{"<|end|>"})
	require.NoError(t, err)
	end, _ := tokens.ID("<|end|>")
	s = checkpoint.Shape{Vocab: tokens.VocabSize(), Hidden: 64, Layers: 2, Heads: 4, KVHeads: 2, HeadDim: 32, FFN: 96,
		Positions: 256, RopeTheta: 10000, NormEps: 1e-6, Pad: -1, EOS: []int32{end}}
	dir = filepath.Join(t.TempDir(), "policy")
	c, err := checkpoint.Fresh(s, seed)
	require.NoError(t, err)
	for _, w := range c.Weights {
		for i := range w.Data {
			w.Data[i] *= 2 // so that distributions are neither flat nor certain
		}
	}
	_, err = checkpoint.Write(dir, c)
	require.NoError(t, err)
	for name, text := range tokens.Files() {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), text, 0o644))
	}
	return dir, s
}
