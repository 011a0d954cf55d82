package checkpoint

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// An untied model has the same numbers, and a head that equals the embedding.
func TestUntie(t *testing.T) {
	s := Shape{Vocab: 11, Hidden: 8, Layers: 1, Heads: 2, KVHeads: 1, HeadDim: 4, FFN: 8, Positions: 64,
		RopeTheta: 10000, NormEps: 1e-6, Pad: -1}
	from, to := filepath.Join(t.TempDir(), "tied"), filepath.Join(t.TempDir(), "untied")
	require.NoError(t, Init(from, s, 3, map[string][]byte{"tokenizer.json": []byte("{}")}))
	tied, err := Open(from, false)
	require.NoError(t, err)
	defer tied.Close()
	apart, err := tied.Untie()
	require.NoError(t, err)
	require.False(t, tied.Shape.Untied, "the model itself stays")
	require.NoError(t, WriteModel(to, apart, F32))
	got, err := Read(to, false)
	require.NoError(t, err)
	require.True(t, got.Shape.Untied)
	require.NoError(t, tied.load())
	require.Len(t, got.Weights, len(tied.Weights)+1)
	for i, w := range tied.Weights {
		require.Equal(t, w.Name, got.Weights[i].Name)
		require.Equal(t, w.Data, got.Weights[i].Data)
	}
	head := got.Weights[len(tied.Weights)]
	require.Equal(t, NameHead, head.Name)
	require.Equal(t, tied.Weights[0].Data, head.Data)
	again, err := got.Untie()
	require.NoError(t, err)
	require.Len(t, again.Weights, len(got.Weights))
}
