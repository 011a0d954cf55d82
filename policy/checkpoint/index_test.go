package checkpoint

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// inParts is a folder whose weights are in two files.
func inParts(t *testing.T) (dir string, whole *Checkpoint) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "model")
	whole, err := Fresh(small, 3)
	require.NoError(t, err)
	_, err = Write(dir, whole)
	require.NoError(t, err)
	require.NoError(t, os.Remove(filepath.Join(dir, FileWeights)))
	require.NoError(t, writeFile(dir, "model-00001-of-00002.safetensors", whole.Weights[5:], nil, F32))
	require.NoError(t, writeFile(dir, "model-00002-of-00002.safetensors", whole.Weights[:5], nil, F32))
	writeIndex(t, dir, `{"weight_map": {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors",
		"c": "model-00001-of-00002.safetensors"}}`)
	return dir, whole
}

func writeIndex(t *testing.T, dir, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(dir, FileIndex), []byte(text), 0o600))
}

func TestReadsWeightsInSeveralFiles(t *testing.T) {
	dir, want := inParts(t)
	got, err := Read(dir, false)
	require.NoError(t, err)
	require.Equal(t, want.Weights, got.Weights)
}

func TestBadIndexes(t *testing.T) {
	for _, c := range []struct{ index, want string }{
		{"{", "parse model.safetensors.index.json"},
		{"{}", "model.safetensors.index.json: weight_map names no file"},
		{`{"weight_map": {"a": "../x.safetensors"}}`, `"../x.safetensors" is no safetensors file of the folder`},
		{`{"weight_map": {"a": "config.json"}}`, `"config.json" is no safetensors file of the folder`},
		{`{"weight_map": {"a": "model-9.safetensors"}}`, "model-9.safetensors: no such file"},
		{`{"weight_map": {"a": "model-00001-of-00002.safetensors"}}`, `"model.embed_tokens.weight" is missing`},
		{
			`{"weight_map": {"a": "model-00001-of-00002.safetensors", "b": "twice.safetensors"}}`,
			"twice.safetensors: tensor \"model.layers.0.self_attn.q_norm.weight\" is in another file too",
		},
	} {
		dir, whole := inParts(t)
		require.NoError(t, writeFile(dir, "twice.safetensors", whole.Weights[5:6], nil, F32))
		writeIndex(t, dir, c.index)
		_, err := Read(dir, false)
		require.ErrorContains(t, err, c.want)
	}
}

// An adapter's product is added to a weight that is read in parts, also where a part ends within a row.
func TestAnAdapterIsAddedPartByPart(t *testing.T) {
	const out, in, rank = 300, 777, 3 // more numbers than one part has
	d := &delta{a: make([]float32, rank*in), b: make([]float32, out*rank), rank: rank, in: in, scale: 0.5}
	want := make([]float32, out*in)
	for i := range d.a {
		d.a[i] = float32(i%13) - 6
	}
	for i := range d.b {
		d.b[i] = float32(i%7) - 3
	}
	for o := range out {
		for r := range rank {
			for i := range in {
				want[o*in+i] += 0.5 * d.b[o*rank+r] * d.a[r*in+i]
			}
		}
	}
	dir := t.TempDir()
	zeros := Tensor{Name: "w", Dims: []int{out, in}, Data: make([]float32, out*in)}
	require.NoError(t, writeFile(dir, "w.safetensors", []Tensor{zeros}, nil, F32))
	f, file, err := openTensors(dir, "w.safetensors")
	require.NoError(t, err)
	defer file.Close()
	w := f.Tensors[0]
	w.stored = w.stored.with(d)
	got := make([]float32, out*in)
	require.NoError(t, w.Read(func(at int, numbers []float32) { copy(got[at:], numbers) }))
	require.Equal(t, want, got)
	require.NoError(t, w.Read(func(at int, numbers []float32) { copy(got[at:], numbers) }))
	require.Equal(t, want, got, "a second read adds the product once")
}

// WriteModel leaves out everything that is not the model, and writes config.json with the dtype of the weights.
func TestWriteModel(t *testing.T) {
	critic := small
	critic.ValueHead = true
	c := withOptimizer(t, critic)
	for dtype, name := range map[Dtype]string{F32: "float32", F16: "float16", BF16: "bfloat16"} {
		dir := filepath.Join(t.TempDir(), "model")
		require.NoError(t, WriteModel(dir, c, dtype))
		for _, absent := range []string{FileOptimizer, FileValueHead, FileAdapter, FileAdapterConfig} {
			require.NoFileExists(t, filepath.Join(dir, absent))
		}
		config, err := os.ReadFile(filepath.Join(dir, FileConfig))
		require.NoError(t, err)
		require.Contains(t, string(config), `"dtype": "`+name+`"`)
		bytes, err := os.ReadFile(filepath.Join(dir, FileWeights))
		require.NoError(t, err)
		layout, _, err := Layout(bytes)
		require.NoError(t, err)
		require.Len(t, layout, len(small.Tensors()))
		require.Equal(t, string(dtype), layout[0].Dtype)
		got, err := Read(dir, false)
		require.NoError(t, err)
		require.InDeltaSlice(t, c.Weights[0].Data, got.Weights[0].Data, 1e-3)
	}
}
