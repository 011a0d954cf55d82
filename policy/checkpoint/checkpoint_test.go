package checkpoint

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
)

var small = Shape{
	Vocab: 11, Hidden: 8, Layers: 2, Heads: 2, KVHeads: 1, HeadDim: 4, FFN: 12, Positions: 64,
	RopeTheta: 5000, NormEps: 1e-6, EOS: []int32{2, 5}, Pad: 0,
}

func withOptimizer(t *testing.T, s Shape) *Checkpoint {
	c, err := Fresh(s, 3)
	require.NoError(t, err)
	c.Optimizer = &Optimizer{Step: 42, Names: []string{"exp_avg", "exp_avg_sq"}, States: make([][]Tensor, 2)}
	for i, w := range c.Weights {
		first, second := make([]float32, len(w.Data)), make([]float32, len(w.Data))
		for j := range first {
			first[j], second[j] = float32(i)-float32(j), float32(j)/3
		}
		for k, data := range [][]float32{first, second} {
			state := Tensor{Name: stateName(c.Optimizer.Names[k], w.Name), Dims: w.Dims, Data: data}
			c.Optimizer.States[k] = append(c.Optimizer.States[k], state)
		}
	}
	c.Extra = map[string][]byte{"tokenizer.json": []byte(`{"a":1}`), "merges.txt": []byte("x y\n")}
	return c
}

func TestRoundTrip(t *testing.T) {
	for name, change := range map[string]func(*Shape){
		"tied": func(*Shape) {}, "untied": func(s *Shape) { s.Untied = true },
		"value head": func(s *Shape) { s.ValueHead = true },
	} {
		t.Run(name, func(t *testing.T) {
			s := small
			change(&s)
			want := withOptimizer(t, s)
			a, b := filepath.Join(t.TempDir(), "a"), filepath.Join(t.TempDir(), "b")
			digest, err := Write(a, want)
			require.NoError(t, err)
			got, err := Read(a, true)
			require.NoError(t, err)
			require.Equal(t, want.Weights, got.Weights)
			require.Equal(t, want.Optimizer, got.Optimizer)
			require.Empty(t, cmp.Diff(want.Extra, got.Extra))
			require.Empty(t, cmp.Diff(want.Shape, got.Shape))
			again, err := Write(b, got)
			require.NoError(t, err)
			require.Equal(t, digest, again, "equal state gives equal bytes")
			without, err := Read(a, false)
			require.NoError(t, err)
			require.Nil(t, without.Optimizer)
		})
	}
}

func TestInitIsAFunctionOfSeed(t *testing.T) {
	digest := func(seed uint64) string {
		dir := filepath.Join(t.TempDir(), "c")
		require.NoError(t, Init(dir, small, seed, nil))
		d, err := Digest(dir)
		require.NoError(t, err)
		return d
	}
	require.Equal(t, digest(1), digest(1))
	require.NotEqual(t, digest(1), digest(2))
	c, err := Fresh(small, 1)
	require.NoError(t, err)
	require.EqualValues(t, small.Params(), 11*8+2*(8+8*8+4*8*2+4+4+8*8+8+12*8*3)+8)
	var n, squares float64
	for _, v := range c.Weights[0].Data {
		n, squares = n+1, squares+float64(v)*float64(v)
	}
	require.InDelta(t, initStd, math.Sqrt(squares/n), 0.01)
}

func TestAddValueHead(t *testing.T) {
	c := withOptimizer(t, small)
	c.AddValueHead()
	require.True(t, c.Shape.ValueHead)
	require.Equal(t, small.Params()+int64(small.Hidden)+1, c.Shape.Params())
	require.Nil(t, c.Optimizer, "a policy's moments are of another loss")
	require.Len(t, c.Weights, len(c.Shape.Tensors()))
	for i, w := range c.Shape.Tensors() {
		require.Equal(t, w.Name, c.Weights[i].Name)
	}
	head := c.Weights[len(c.Weights)-2:]
	require.Equal(t, []Tensor{
		{Name: NameValueWeight, Dims: []int{1, small.Hidden}, Data: make([]float32, small.Hidden)},
		{Name: NameValueBias, Dims: []int{1}, Data: make([]float32, 1)},
	}, head)
	head[1].Data[0] = 3
	c.AddValueHead()
	require.EqualValues(t, 3, c.Weights[len(c.Weights)-1].Data[0], "a critic stays what it is")
	require.Len(t, c.Weights, len(c.Shape.Tensors()))
}

// TestDigestDefinition pins the digest to its definition, so that other programs can compute it.
func TestDigestDefinition(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{FileWeights: "w", FileConfig: "c", "notes.txt": "not part of it"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644))
	}
	got, err := Digest(dir)
	require.NoError(t, err)
	// printf 'config.json %s\nmodel.safetensors %s\n' $(printf c|sha256sum) $(printf w|sha256sum) | sha256sum
	require.Equal(t, "c488efd99cb0426b81a801b1419b5a063323e5034226a9294322ff6b78ba2318", got)
	_, err = Digest(t.TempDir())
	require.ErrorIs(t, err, fs.ErrNotExist)
}

func TestWriteRefusesAFullFolder(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, Init(dir, small, 1, nil))
	require.ErrorIs(t, Init(dir, small, 1, nil), fs.ErrExist)
	require.Error(t, Init(filepath.Join(dir, "x"), small, 1, map[string][]byte{"../evil": nil}))
}

// TestCorruptFiles cuts and changes each file; every error names the file.
func TestCorruptFiles(t *testing.T) {
	critic := small
	critic.ValueHead = true
	for _, name := range []string{FileConfig, FileWeights, FileOptimizer, FileValueHead} {
		for _, how := range []string{"cut", "header", "empty", "missing tensor"} {
			t.Run(name+"/"+how, func(t *testing.T) {
				dir := filepath.Join(t.TempDir(), "c")
				_, err := Write(dir, withOptimizer(t, critic))
				require.NoError(t, err)
				path := filepath.Join(dir, name)
				b, err := os.ReadFile(path)
				require.NoError(t, err)
				switch how {
				case "cut":
					b = b[:len(b)-5]
				case "header":
					b[0], b[1] = 0xff, 0xff
				case "empty":
					b = nil
				case "missing tensor":
					b = bytes.Replace(b, []byte("layers.1.mlp.up"), []byte("layers.1.mlp.xx"), 1)
					b = bytes.Replace(b, []byte(`"qwen3"`), []byte(`"llama"`), 1)
					b = bytes.Replace(b, []byte("value_head.bias"), []byte("value_head.blas"), 1)
				}
				require.NoError(t, os.WriteFile(path, b, 0o644))
				_, err = Read(dir, true)
				require.Error(t, err)
				require.Contains(t, err.Error(), name)
				require.Contains(t, err.Error(), dir)
			})
		}
	}
}

func TestConfigOfOthers(t *testing.T) {
	s, err := ParseConfig([]byte(`{"model_type":"qwen3","vocab_size":9,"hidden_size":8,"intermediate_size":4,
		"num_hidden_layers":1,"num_attention_heads":2,"num_key_value_heads":1,"head_dim":4,
		"rms_norm_eps":1e-5,"eos_token_id":3,
		"rope_parameters":{"rope_type":"default","rope_theta":1000000},"tie_word_embeddings":true}`))
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(Shape{
		Vocab: 9, Hidden: 8, Layers: 1, Heads: 2, KVHeads: 1, HeadDim: 4, FFN: 4, Positions: 32768,
		RopeTheta: 1e6, NormEps: 1e-5, EOS: []int32{3}, Pad: -1,
	}, s))
	for _, bad := range []string{
		`{"model_type":"gpt2"}`, `{"model_type":"llama"}`, `{"model_type":"qwen3"}`,
		`{"model_type":"qwen3","attention_bias":true}`,
		`{"model_type":"qwen3","rope_scaling":{"type":"yarn"}}`, `{"model_type":"qwen3","use_sliding_window":true}`,
		`{"model_type":"qwen3","hidden_act":"gelu"}`, `{"model_type":"qwen3","rope_parameters":{"rope_type":"yarn"}}`,
	} {
		_, err := ParseConfig([]byte(bad))
		require.ErrorIs(t, err, ErrUnsupported, bad)
	}
	out, err := withDtype([]byte(`{"dtype":"bfloat16","x":1}`), F32)
	require.NoError(t, err)
	require.JSONEq(t, `{"dtype":"float32","x":1}`, string(out))
}

func raw(t testing.TB, header map[string]any, data []byte) []byte {
	h, err := json.Marshal(header)
	require.NoError(t, err)
	return append(append(binary.LittleEndian.AppendUint64(nil, uint64(len(h))), h...), data...)
}

func entry(dtype string, from, to int, shape ...int) map[string]any {
	if shape == nil {
		shape = []int{}
	}
	return map[string]any{"dtype": dtype, "shape": shape, "data_offsets": []int{from, to}}
}

func TestHalfPrecision(t *testing.T) {
	f, err := DecodeSafetensors(raw(t, map[string]any{
		"h": entry("F16", 0, 14, 7), "b": entry("BF16", 14, 18, 2), "s": entry("F32", 18, 22),
	}, []byte{
		0x00, 0x3c, 0x00, 0xc0, 0x01, 0x00, 0x00, 0x04, 0xff, 0x7b, 0x00, 0x7c, 0x00, 0x80,
		0x80, 0x3f, 0x49, 0x40, 0, 0, 0x80, 0x3f,
	}))
	require.NoError(t, err)
	h, _ := f.Find("h")
	require.Equal(
		t,
		[]float32{1, -2, 1.0 / (1 << 24), 1.0 / (1 << 14), 65504, float32(math.Inf(1)), float32(math.Copysign(0, -1))},
		h.Data,
	)
	b, _ := f.Find("b")
	require.Equal(t, []float32{1, 3.140625}, b.Data)
	s, ok := f.Find("s")
	require.True(t, ok)
	require.Equal(t, []float32{1}, s.Data)
}

func TestBadLayouts(t *testing.T) {
	for name, h := range map[string]map[string]any{
		"gap":       {"a": entry("F32", 4, 8, 1)},
		"overlap":   {"a": entry("F32", 0, 4, 1), "b": entry("F32", 0, 4, 1)},
		"beyond":    {"a": entry("F32", 0, 16, 4)},
		"backwards": {"a": entry("F32", 8, 0, 2)},
		"short":     {"a": entry("F32", 0, 4, 1)},
		"shape":     {"a": entry("F32", 0, 8, 3)},
		"negative":  {"a": entry("F32", 0, 8, -2)},
		"huge":      {"a": entry("F32", 0, 8, 1<<27, 1<<27, 1<<27)},
		"dtype":     {"a": entry("I64", 0, 8, 1)},
	} {
		_, err := DecodeSafetensors(raw(t, h, make([]byte, 8)))
		require.Error(t, err, name)
	}
}

// FuzzSafetensors: whatever the bytes, no panic, and what decodes encodes and decodes to itself.
func FuzzSafetensors(f *testing.F) {
	var b bytes.Buffer
	require.NoError(
		f,
		EncodeSafetensors(
			&b, []Tensor{{Name: "a", Dims: []int{2}, Data: []float32{1, 2}}}, map[string]string{"k": "v"},
		),
	)
	f.Add(b.Bytes())
	f.Add(raw(f, map[string]any{"h": entry("F16", 0, 4, 2)}, make([]byte, 4)))
	f.Add([]byte{255, 255, 255, 255, 255, 255, 255, 255, '{', '}'})
	f.Fuzz(func(t *testing.T, in []byte) {
		file, err := DecodeSafetensors(in)
		if err != nil {
			return
		}
		var out bytes.Buffer
		require.NoError(t, EncodeSafetensors(&out, file.Tensors, file.Metadata))
		again, err := DecodeSafetensors(out.Bytes())
		require.NoError(t, err)
		require.Len(t, again.Tensors, len(file.Tensors))
	})
}

// A folder whose weights are in several files has a digest that covers the index and each of them.
func TestDigestOfSeveralFiles(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	write(FileConfig, "{}")
	write("model-00001-of-00002.safetensors", "a")
	_, err := Digest(dir)
	require.ErrorIs(t, err, os.ErrNotExist, "without an index they are no weights")
	seen := map[string]bool{}
	for _, file := range []string{FileIndex, "model-00002-of-00002.safetensors", "model-00001-of-00002.safetensors"} {
		write(file, "changed")
		d, err := Digest(dir)
		require.NoError(t, err)
		require.False(t, seen[d], file)
		seen[d] = true
	}
	write("model-notes.txt", "of no account")
	d, err := Digest(dir)
	require.NoError(t, err)
	require.True(t, seen[d])
}
