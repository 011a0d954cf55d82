package checkpoint

import (
	"math"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

const sizes = `"vocab_size":9,"hidden_size":8,"intermediate_size":4,"num_hidden_layers":2,"num_attention_heads":2`

// TestArchitectures reads what config.json leaves out as transformers does.
func TestArchitectures(t *testing.T) {
	for config, want := range map[string]Shape{
		`{"model_type":"llama",` + sizes + `}`: {
			Architecture: Llama, KVHeads: 2, HeadDim: 4, Positions: 2048, RopeTheta: 10000,
		},
		`{"model_type":"llama","num_key_value_heads":1,"head_dim":6,"max_position_embeddings":64,` +
			`"rope_theta":500000,"rope_scaling":{"rope_type":"llama3","factor":8,"low_freq_factor":1,` +
			`"high_freq_factor":4,"original_max_position_embeddings":32},` + sizes + `}`: {
			Architecture: Llama, KVHeads: 1, HeadDim: 6, Positions: 64, RopeTheta: 500000,
			Rope: RopeScaling{Type: RopeLlama3, Factor: 8, LowFreq: 1, HighFreq: 4, Original: 32},
		},
		`{"model_type":"qwen2","rope_scaling":{"type":"yarn","factor":4},"max_position_embeddings":64,` +
			`"num_key_value_heads":2,` + sizes + `}`: {
			Architecture: Qwen2, KVHeads: 2, HeadDim: 4, Positions: 64, RopeTheta: 10000,
			Rope: RopeScaling{Type: RopeYarn, Factor: 4, BetaFast: 32, BetaSlow: 1, Original: 64,
				Attention: 0.1*math.Log(4) + 1},
		},
		`{"model_type":"qwen2","use_sliding_window":true,"sliding_window":16,"num_key_value_heads":2,` + sizes + `}`: {
			Architecture: Qwen2, KVHeads: 2, HeadDim: 4, Positions: 16, RopeTheta: 10000,
		},
		`{"model_type":"mistral","num_key_value_heads":2,` + sizes + `}`: {
			Architecture: Mistral, KVHeads: 2, HeadDim: 4, Positions: 4096, RopeTheta: 10000,
		},
		`{"model_type":"mistral","num_key_value_heads":2,"sliding_window":null,` + sizes + `}`: {
			Architecture: Mistral, KVHeads: 2, HeadDim: 4, Positions: 131072, RopeTheta: 10000,
		},
	} {
		want.Vocab, want.Hidden, want.FFN, want.Layers, want.Heads = 9, 8, 4, 2, 2
		want.NormEps, want.Untied, want.Pad = 1e-6, true, -1
		got, err := ParseConfig([]byte(config))
		require.NoError(t, err, config)
		require.Equal(t, want, got, config)
	}
}

// TestRefusedArchitectures: an error names the field.
func TestRefusedArchitectures(t *testing.T) {
	sized := func(more string) string { return `{"model_type":"llama",` + sizes + `,` + more + `}` }
	for config, want := range map[string]string{
		`{"model_type":"gemma3"}`: `"gemma3", want one of llama, mistral, qwen2, qwen3`,

		`{"model_type":"llama","attention_bias":true}`: "attention_bias is set",
		`{"model_type":"llama","mlp_bias":true}`:       "mlp_bias is set",

		`{"model_type":"llama","quantization_config":{"quant_method":"awq"}}`: "quantization_config is set",

		sized(`"rope_scaling":{"type":"dynamic","factor":2}`):         `"dynamic", want default, linear`,
		sized(`"rope_scaling":{"type":"linear"}`):                     "factor of rope_type linear is 0",
		sized(`"rope_parameters":{"partial_rotary_factor":0.5}`):      "partial_rotary_factor is 0.5",
		sized(`"rope_scaling":{"rope_type":"llama3","factor":8}`):     "original_max_position_embeddings",
		sized(`"rope_scaling":{"rope_type":"yarn","truncate":false}`): "truncate is false",

		`{"model_type":"mistral","num_key_value_heads":2,"sliding_window":0,` + sizes + `}`: "sliding_window is 0",
	} {
		_, err := ParseConfig([]byte(config))
		require.ErrorContains(t, err, want, config)
	}
}

// TestArchitecturesRoundTrip writes and reads a model of each architecture.
func TestArchitecturesRoundTrip(t *testing.T) {
	for _, a := range architectures {
		s := small
		s.Architecture, s.Rope = a.Name, RopeScaling{Type: RopeLinear, Factor: 2}
		dir := filepath.Join(t.TempDir(), "c")
		require.NoError(t, Init(dir, s, 1, nil))
		c, err := Read(dir, false)
		require.NoError(t, err)
		if a.Name == Qwen3 {
			s.Architecture = ""
		}
		require.Equal(t, s, c.Shape)
		require.Len(t, c.Weights, len(s.Tensors()))
	}
}

// TestTensorsOfAnotherArchitecture: a file with norms of heads is no Llama model.
func TestTensorsOfAnotherArchitecture(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "c")
	c, err := Fresh(small, 1)
	require.NoError(t, err)
	s := small
	s.Architecture = Llama
	c.Config = marshalConfig(s)
	_, err = Write(dir, c)
	require.NoError(t, err)
	_, err = Read(dir, false)
	require.ErrorIs(t, err, ErrUnsupported)
	require.ErrorContains(t, err, "does not belong to a llama model of")
}
