package checkpoint

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

const adapterText = `{"peft_type": "LORA", "r": 2, "lora_alpha": 6, "target_modules": ["v_proj"], "bias": "none",` +
	` "base_model_name_or_path": null}`

// adapted is a folder with an adapter of rank 2 for the first layer's v_proj, [4, 8], and that weight without it.
func adapted(t *testing.T, change func(tensors []Tensor) []Tensor) (dir string, before []float32) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "model")
	c, err := Fresh(small, 3)
	require.NoError(t, err)
	_, err = Write(dir, c)
	require.NoError(t, err)
	a := Tensor{
		Name: "base_model.model.model.layers.0.self_attn.v_proj.lora_A.weight", Dims: []int{2, 8},
		Data: make([]float32, 16),
	}
	b := Tensor{
		Name: "base_model.model.model.layers.0.self_attn.v_proj.lora_B.weight", Dims: []int{4, 2},
		Data: make([]float32, 8),
	}
	a.Data[0*8+5], a.Data[1*8+5], b.Data[3*2+0], b.Data[3*2+1] = 2, 3, 5, 7
	require.NoError(t, writeFile(dir, FileAdapter, change([]Tensor{a, b}), map[string]string{"format": "pt"}, F32))
	require.NoError(t, os.WriteFile(filepath.Join(dir, FileAdapterConfig), []byte(adapterText), 0o600))
	return dir, c.Weights[4].Data
}

func same(tensors []Tensor) []Tensor { return tensors }

// TestReadMergesAnAdapter: 6/2 · (5·2 + 7·3) is added to one number of one weight.
func TestReadMergesAnAdapter(t *testing.T) {
	dir, before := adapted(t, same)
	c, err := Read(dir, false)
	require.NoError(t, err)
	require.True(t, c.Merged)
	require.Equal(t, "model.layers.0.self_attn.v_proj.weight", c.Weights[4].Name)
	want := append([]float32{}, before...)
	want[3*8+5] += 93
	require.InDeltaSlice(t, want, c.Weights[4].Data, 1e-4)

	plain := filepath.Join(t.TempDir(), "merged")
	_, err = Write(plain, c)
	require.NoError(t, err)
	require.NoFileExists(t, filepath.Join(plain, FileAdapterConfig))
	again, err := Read(plain, false)
	require.NoError(t, err)
	require.False(t, again.Merged)
	require.Equal(t, c.Weights[4].Data, again.Weights[4].Data)
}

func TestAdapterIsPartOfTheDigest(t *testing.T) {
	one, _ := adapted(t, same)
	two, _ := adapted(t, func(x []Tensor) []Tensor { x[1].Data[0] = 1; return x })
	a, err := Digest(one)
	require.NoError(t, err)
	b, err := Digest(two)
	require.NoError(t, err)
	require.NotEqual(t, a, b)
	require.NoError(t, os.WriteFile(filepath.Join(one, FileAdapterConfig), []byte(adapterText+"\n"), 0o600))
	c, err := Digest(one)
	require.NoError(t, err)
	require.NotEqual(t, a, c)
}

func TestBadAdapters(t *testing.T) {
	write := func(text string) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			require.NoError(t, os.WriteFile(filepath.Join(dir, FileAdapterConfig), []byte(text), 0o600))
		}
	}
	none := func(*testing.T, string) {}
	for _, c := range []struct {
		name    string
		tensors func([]Tensor) []Tensor
		edit    func(*testing.T, string)
		is      error
		message string
	}{
		{"no JSON", same, write("{"), ErrCorrupt, "parse adapter_config.json"},
		{
			"another kind", same, write(`{"peft_type": "IA3"}`), ErrUnsupported,
			`adapter_config.json: unsupported checkpoint: peft_type is "IA3"`,
		},
		{"no rank", same, write(`{"peft_type": "LORA"}`), ErrCorrupt, "r is 0"},
		{
			"DoRA", same, write(`{"peft_type": "LORA", "r": 2, "use_dora": true}`), ErrUnsupported,
			"more than a plain adapter",
		},
		{
			"another rank", same, write(`{"peft_type": "LORA", "r": 3}`), ErrCorrupt,
			`v_proj.lora_A.weight" is [2 8], which does not fit`,
		},
		{
			"half a pair", func(x []Tensor) []Tensor { return x[:1] }, none, ErrCorrupt,
			`v_proj.lora_B.weight" is missing`,
		},
		{"of another model", func(x []Tensor) []Tensor {
			x[0].Name = "base_model.model.model.layers.9.self_attn.v_proj.lora_A.weight"
			return x[:1]
		}, none, ErrCorrupt, `layers.9.self_attn.v_proj.lora_A.weight" belongs to no tensor of the model`},
		{"no configuration", same, func(t *testing.T, dir string) {
			require.NoError(t, os.Remove(filepath.Join(dir, FileAdapterConfig)))
		}, os.ErrNotExist, "adapter_config.json"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir, _ := adapted(t, c.tensors)
			c.edit(t, dir)
			_, err := Read(dir, false)
			require.ErrorIs(t, err, c.is)
			require.ErrorContains(t, err, c.message)
		})
	}
	dir, _ := adapted(t, same)
	_, err := Read(dir, true)
	require.ErrorIs(t, err, ErrUnsupported)
	require.ErrorContains(t, err, "adapter_config.json: a LoRA adapter trains in PyTorch alone (engine.kind: torch)")
}

// A folder whose adapter is at a server alone is not read as its base.
func TestAnAdapterElsewhere(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "remote")
	require.NoError(t, Init(dir, Shape{Vocab: 40, Hidden: 32, Layers: 1, Heads: 2, KVHeads: 1, HeadDim: 16, FFN: 32,
		Positions: 64, RopeTheta: 10000, NormEps: 1e-6, Pad: -1}, 1, map[string][]byte{"tokenizer.json": []byte("{}")}))
	before, err := Digest(dir)
	require.NoError(t, err)
	remote, err := IsRemote(dir)
	require.NoError(t, err)
	require.False(t, remote)
	require.NoError(t, os.WriteFile(filepath.Join(dir, FileReference), []byte("{}"), 0o644))
	remote, err = IsRemote(dir)
	require.NoError(t, err)
	require.True(t, remote)
	after, err := Digest(dir)
	require.NoError(t, err)
	require.NotEqual(t, before, after, "the name is all that tells two such folders apart")
	_, err = Read(dir, false)
	require.ErrorIs(t, err, ErrUnsupported)
	require.ErrorContains(t, err, "the adapter is at a Tinker server")
}
