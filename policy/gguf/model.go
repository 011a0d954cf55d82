package gguf

import (
	"fmt"
	"strings"

	"github.com/ropewalk/ropewalk/policy/checkpoint"
)

// architectures are llama.cpp's names of the architectures.
var architectures = map[checkpoint.Architecture]string{
	checkpoint.Qwen3: "qwen3", checkpoint.Qwen2: "qwen2", checkpoint.Llama: "llama", checkpoint.Mistral: "llama",
}

// interleaved reports whether a tensor's rows lie in another order in the file (see rotated).
func interleaved(s checkpoint.Shape, name string) bool {
	return architectures[s.Family()] == "llama" &&
		(strings.HasSuffix(name, "self_attn.q_proj.weight") || strings.HasSuffix(name, "self_attn.k_proj.weight"))
}

// entries describe the model, then its tokenizer.
func (m Model) entries() ([]entry, error) {
	s := m.Checkpoint.Shape
	kind, known := fileTypes[m.Dtype]
	if !known {
		return nil, fmt.Errorf("write GGUF: weights as %q: F32, F16 and BF16 are written", m.Dtype)
	}
	architecture := architectures[s.Family()]
	if s.Rope.Type != checkpoint.RopeDefault && s.Rope.Type != checkpoint.RopeLinear {
		return nil, fmt.Errorf("write GGUF: rope_type %s is not supported, only default and linear", s.Rope.Type)
	}
	if s.Family() == checkpoint.Qwen2 && s.Heads*s.HeadDim != s.Hidden {
		return nil, fmt.Errorf("write GGUF: llama.cpp loads no qwen2 model with %d heads of %d dimensions and a "+
			"hidden_size of %d", s.Heads, s.HeadDim, s.Hidden)
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
	if s.Family() != checkpoint.Qwen3 {
		out = append(out, entry{of("rope.dimension_count"), uint32(s.HeadDim)})
	}
	if s.Rope.Type == checkpoint.RopeLinear {
		out = append(out, entry{of("rope.scaling.type"), string(s.Rope.Type)},
			entry{of("rope.scaling.factor"), float32(s.Rope.Factor)})
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
	"self_attn.q_proj.bias":           "attn_q.bias",
	"self_attn.k_proj.bias":           "attn_k.bias",
	"self_attn.v_proj.bias":           "attn_v.bias",
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
