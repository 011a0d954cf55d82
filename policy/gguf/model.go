package gguf

import (
	"fmt"
	"strings"

	"github.com/ropewalk/ropewalk/policy/checkpoint"
)

// architecture is llama.cpp's name of the model.
const architecture = "qwen3"

// entries describe the model, then its tokenizer.
func (m Model) entries() ([]entry, error) {
	s := m.Checkpoint.Shape
	kind, known := fileTypes[m.Dtype]
	if !known {
		return nil, fmt.Errorf("write GGUF: weights as %q: F32, F16 and BF16 are written", m.Dtype)
	}
	of := func(key string) string { return architecture + "." + key }
	out := []entry{
		{"general.architecture", architecture},
		{"general.type", "model"},
		{"general.name", m.Name},
		{"general.file_type", kind},
		{"general.alignment", uint32(alignment)},
		{of("block_count"), uint32(s.Layers)},
		{of("context_length"), uint32(s.Positions)},
		{of("embedding_length"), uint32(s.Hidden)},
		{of("feed_forward_length"), uint32(s.FFN)},
		{of("attention.head_count"), uint32(s.Heads)},
		{of("attention.head_count_kv"), uint32(s.KVHeads)},
		{of("attention.key_length"), uint32(s.HeadDim)},
		{of("attention.value_length"), uint32(s.HeadDim)},
		{of("attention.layer_norm_rms_epsilon"), float32(s.NormEps)},
		{of("rope.freq_base"), float32(s.RopeTheta)},
		{of("vocab_size"), uint32(s.Vocab)},
	}
	tokens, err := m.tokens()
	return append(out, tokens...), err
}

// fileTypes are llama.cpp's numbers for the format of most tensors.
var fileTypes = map[checkpoint.Dtype]uint32{checkpoint.F32: 0, checkpoint.F16: 1, checkpoint.BF16: 32}

// tensorTypes are ggml's numbers of the formats.
var tensorTypes = map[checkpoint.Dtype]uint32{checkpoint.F32: 0, checkpoint.F16: 1, checkpoint.BF16: 30}

// whole maps the names of tensors outside the layers.
var whole = map[string]string{
	checkpoint.NameEmbed: "token_embd.weight",
	checkpoint.NameNorm:  "output_norm.weight",
	checkpoint.NameHead:  "output.weight",
}

// inLayer maps the names of a layer's tensors.
var inLayer = map[string]string{
	"input_layernorm.weight":          "attn_norm.weight",
	"self_attn.q_proj.weight":         "attn_q.weight",
	"self_attn.k_proj.weight":         "attn_k.weight",
	"self_attn.v_proj.weight":         "attn_v.weight",
	"self_attn.q_norm.weight":         "attn_q_norm.weight",
	"self_attn.k_norm.weight":         "attn_k_norm.weight",
	"self_attn.o_proj.weight":         "attn_output.weight",
	"post_attention_layernorm.weight": "ffn_norm.weight",
	"mlp.gate_proj.weight":            "ffn_gate.weight",
	"mlp.up_proj.weight":              "ffn_up.weight",
	"mlp.down_proj.weight":            "ffn_down.weight",
}

// rename returns llama.cpp's name of a tensor.
func rename(name string) (string, error) {
	if to, ok := whole[name]; ok {
		return to, nil
	}
	if rest, ok := strings.CutPrefix(name, "model.layers."); ok {
		layer, part, _ := strings.Cut(rest, ".")
		if to, ok := inLayer[part]; ok {
			return "blk." + layer + "." + to, nil
		}
	}
	return "", fmt.Errorf("write GGUF: tensor %q has no name there", name)
}
