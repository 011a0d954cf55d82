package checkpoint

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLengthen(t *testing.T) {
	dir := t.TempDir()
	s := Shape{Vocab: 300, Hidden: 16, Layers: 1, Heads: 2, KVHeads: 1, HeadDim: 8, FFN: 16, Positions: 64,
		RopeTheta: 10000, NormEps: 1e-6, Pad: -1, EOS: []int32{256}}
	require.NoError(t, Init(dir, s, 1, nil))
	require.NoError(t, Lengthen(dir, 500))
	c, err := Read(dir, false)
	require.NoError(t, err)
	want := s
	want.Positions = 500
	require.Equal(t, want, c.Shape)
}

// A model whose attention has a window, or whose positions are scaled, would be another model.
func TestLengthenRefuses(t *testing.T) {
	plain := `"hidden_size": 16, "vocab_size": 300, "intermediate_size": 16, "num_hidden_layers": 1,
		"num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 8, "max_position_embeddings": 64`
	for config, text := range map[string]string{
		`{"model_type": "mistral", "sliding_window": 64, ` + plain + `}`: "reaches back 64 positions",
		`{"rope_scaling": {"rope_type": "yarn", "factor": 4}, "model_type": "qwen3", ` +
			plain + `}`: "is scaled for 64",
		`{"model_type": "qwen3"`: "parse config.json",
	} {
		require.ErrorContains(t, CanLengthen([]byte(config), 500), text)
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, FileConfig), []byte(config), 0o600))
		require.Error(t, Lengthen(dir, 500))
	}
	require.NoError(t, CanLengthen([]byte(`{"model_type": "qwen3", `+plain+`}`), 500))
	require.Error(t, Lengthen(t.TempDir(), 500), "there is no config.json")
}
