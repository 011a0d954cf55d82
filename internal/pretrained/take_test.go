package pretrained_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/pretrained"
)

// What is wrong with a model is said without the folder that it is taken into, and without types of Go.
func TestFaultsOfAModel(t *testing.T) {
	const config = `{"model_type": "llama", "vocab_size": 8, "hidden_size": 8, "intermediate_size": 8, ` +
		`"num_hidden_layers": 1, "num_attention_heads": 1, "num_key_value_heads": 1, "head_dim": 8, ` +
		`"max_position_embeddings": 8, "rms_norm_eps": 1e-6, "rope_theta": 1e4, "hidden_act": "silu"}`
	for want, files := range map[string]map[string]string{
		"corrupt checkpoint: parse config.json: must be an object, got a list": {"config.json": "[]"},
		"corrupt checkpoint: parse config.json: model_type: must be a text, got a number": {
			"config.json": `{"model_type": 3}`},
		"open model.safetensors: no such file or directory": {"config.json": config},
		"model.safetensors: corrupt checkpoint: parse safetensors header: must be an object, got a list": {
			"config.json": config, "model.safetensors": "\x08\x00\x00\x00\x00\x00\x00\x00[1,2,3] "},
	} {
		folder, to := t.TempDir(), filepath.Join(t.TempDir(), "taken")
		for name, text := range files {
			require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600))
		}
		err := pretrained.Take(folder, to)
		require.EqualError(t, err, want)
		if len(files) == 1 && files["config.json"] == config {
			require.ErrorIs(t, err, fs.ErrNotExist)
		}
	}
}
