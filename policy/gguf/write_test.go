package gguf

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/testing/longform"
	"github.com/ropewalk/ropewalk/internal/testing/pythontest"
	"github.com/ropewalk/ropewalk/policy/checkpoint"
	"github.com/ropewalk/ropewalk/policy/tokenizer"
)

// sample is a model with weights large enough that its likeliest tokens are far apart.
func sample(t *testing.T, untied bool) Model {
	t.Helper()
	tokens, err := tokenizer.New([]string{"<|im_end|>", "<think>", "</think>"})
	require.NoError(t, err)
	v := Vocabulary{Split: "default", Start: -1}
	var bytes int
	for v.Tokens, bytes = tokens.Symbols(); bytes+len(v.Added) < len(v.Tokens); {
		v.Added = append(v.Added, int32(bytes+len(v.Added)))
	}
	c, err := checkpoint.Fresh(checkpoint.Shape{
		Vocab: 264, Hidden: 32, Layers: 2, Heads: 4, KVHeads: 2, HeadDim: 16, FFN: 48, Positions: 128,
		RopeTheta: 5000, NormEps: 1e-6, Untied: untied, EOS: []int32{256}, Pad: 256,
	}, 3)
	require.NoError(t, err)
	for _, w := range c.Weights {
		for i := range w.Data {
			switch row := i / w.Dims[len(w.Dims)-1]; {
			case len(w.Dims) == 1:
				w.Data[i] += float32(i%5) / 10
			case w.Dims[0] != c.Shape.Vocab || row < 0xc0 || row > 0xf7:
				w.Data[i] *= 12
			} // a token that only begins a character stays unlikely, because llama.cpp holds it back
		}
	}
	c.Extra = tokens.Files()
	return Model{Name: "sample", Checkpoint: c, Vocabulary: v, Dtype: checkpoint.F32}
}

type next struct {
	Prompt    int          `json:"prompt"` // tokens
	Likeliest [][2]float64 `json:"likeliest"`
}

type reading struct {
	Fields       map[string]any    `json:"fields"`
	Tensors      map[string][2]any `json:"tensors"`
	Same         []string          `json:"same"`
	Llama        []next            `json:"llama"`
	Transformers []next            `json:"transformers"`
}

var prompts = []string{
	"What is 12 + 30? <think>né\n\tüß…</think> ok", "  12 + 30", "<think></think><|im_end|>", "a",
	"漢字 and more text\r\n\n",
}

// read writes models in both forms and has other programs read them.
func read(t *testing.T, prompts []string, models ...Model) (out []reading) {
	t.Helper()
	exe := pythontest.Need(t, "LLAMA", "gguf", "xllamacpp", "torch", "transformers")
	var jobs []any
	for _, m := range models {
		folder, file := filepath.Join(t.TempDir(), "model"), filepath.Join(t.TempDir(), "model.gguf")
		require.NoError(t, checkpoint.WriteModel(folder, m.Checkpoint, checkpoint.F32))
		f, err := os.Create(file)
		require.NoError(t, err)
		require.NoError(t, Write(f, m))
		require.NoError(t, f.Close())
		names := map[string]string{}
		for _, tensor := range m.Checkpoint.Shape.Tensors() {
			name, err := rename(tensor.Name)
			require.NoError(t, err)
			names[name] = tensor.Name
		}
		jobs = append(jobs, map[string]any{"file": file, "folder": folder, "prompts": prompts, "names": names})
	}
	pythontest.Ask(t, exe, filepath.Join("testdata", "read.py"), jobs, &out)
	return out
}

// The package gguf reads every tensor and entry, and llama.cpp splits texts and continues them as transformers does.
func TestOtherProgramsReadTheFile(t *testing.T) {
	longform.Need(t, "ROPEWALK_TEST_MODELS", "test-models")
	tied, untied := sample(t, false), sample(t, true)
	for k, got := range read(t, prompts, tied, untied) {
		require.Len(t, got.Tensors, len([]Model{tied, untied}[k].Checkpoint.Weights))
		require.Len(t, got.Same, len(got.Tensors))
		require.Equal(t, [2]any{"F32", []any{32.0, 64.0}}, got.Tensors["blk.1.attn_output.weight"])
		for key, want := range map[string]any{
			"general.architecture": "qwen3", "qwen3.block_count": 2.0, "qwen3.attention.head_count_kv": 2.0,
			"qwen3.attention.key_length": 16.0, "qwen3.rope.freq_base": 5000.0, "qwen3.context_length": 128.0,
			"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.eos_token_id": 256.0,
		} {
			require.Equal(t, want, got.Fields[key], key)
		}
		tokens := got.Fields["tokenizer.ggml.tokens"].([]any)
		require.Len(t, tokens, 264)
		require.Equal(t, []any{"A", "Ġ", "<think>", "[PAD263]"},
			[]any{tokens['A'], tokens[' '], tokens[257], tokens[263]})
		types := got.Fields["tokenizer.ggml.token_type"].([]any)
		require.Equal(t, []any{1.0, 4.0, 5.0}, []any{types[255], types[257], types[263]})

		require.Equal(t, len(prompts[0])-len("<think>")-len("</think>")+2, got.Llama[0].Prompt)
		for i, want := range got.Transformers {
			require.Equal(t, want.Prompt, got.Llama[i].Prompt, "tokens of %q", prompts[i])
			for n, likely := range want.Likeliest {
				require.Equal(t, likely[0], got.Llama[i].Likeliest[n][0], "after %q", prompts[i])
				require.InDelta(t, likely[1], got.Llama[i].Likeliest[n][1], 1e-4, "after %q", prompts[i])
			}
		}
	}
}

func TestNarrowFormats(t *testing.T) {
	half, brain := sample(t, false), sample(t, true)
	half.Dtype, brain.Dtype = checkpoint.F16, checkpoint.BF16
	for i, got := range read(t, nil, half, brain) {
		require.Len(t, got.Same, len(got.Tensors))
		require.Equal(t, []string{"F16", "BF16"}[i], got.Tensors["token_embd.weight"][0])
		require.Equal(t, "F32", got.Tensors["output_norm.weight"][0])
	}
}

// A file is a function of the model.
func TestEqualModelsGiveEqualBytes(t *testing.T) {
	var a, b bytes.Buffer
	require.NoError(t, Write(&a, sample(t, false)))
	require.NoError(t, Write(&b, sample(t, false)))
	require.True(t, bytes.Equal(a.Bytes(), b.Bytes()))
	require.Equal(t, 0, a.Len()%alignment)
}

func TestModelsThatCannotBeWritten(t *testing.T) {
	for _, c := range []struct {
		change func(*Model)
		want   string
	}{
		{func(m *Model) { m.Dtype = "I8" }, `weights as "I8"`},
		{func(m *Model) { m.Checkpoint.Shape.EOS = []int32{1, 2, 3} }, "eos_token_id: GGUF has room for 2 ids"},
		{
			func(m *Model) { m.Vocabulary.Tokens = slices.Repeat([]string{"x"}, 265) },
			"the tokenizer has 265 tokens, the model 264",
		},
		{
			func(m *Model) { m.Dtype, m.Checkpoint.Weights[2].Data[0] = checkpoint.F16, 1e6 },
			"q_proj.weight\": number is out of the format's range: 1e+06 as F16",
		},
	} {
		m := sample(t, false)
		c.change(&m)
		require.ErrorContains(t, Write(&bytes.Buffer{}, m), c.want)
	}
	_, err := rename("model.layers.0.mlp.gate.weight")
	require.ErrorContains(t, err, "has no name there")
}

func TestChatTemplate(t *testing.T) {
	for _, c := range []struct{ name, text, want, fails string }{
		{"chat_template.jinja", "{{x}}", "{{x}}", ""},
		{"tokenizer_config.json", `{"chat_template": "{{y}}"}`, "{{y}}", ""},
		{"tokenizer_config.json", `{"chat_template": null}`, "", ""},
		{"vocab.json", `{}`, "", ""},
		{"tokenizer_config.json", `{"chat_template": [{"name": "a"}]}`, "", "several templates"},
		{"tokenizer_config.json", `[`, "", "read tokenizer_config.json"},
	} {
		got, err := ChatTemplate(map[string][]byte{c.name: []byte(c.text)})
		if c.fails != "" {
			require.ErrorContains(t, err, c.fails)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, c.want, got)
	}
	m := sample(t, false)
	m.Vocabulary.ChatTemplate = "{{messages}}"
	var out strings.Builder
	require.NoError(t, Write(&out, m))
	require.Contains(t, out.String(), "tokenizer.chat_template\b\x00\x00\x00\f\x00\x00\x00\x00\x00\x00\x00{{messages}}")
}
