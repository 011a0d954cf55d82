package checkpoint

import "fmt"

// Tensor is a named row-major array. Data is nil if only the layout matters, and while the numbers are still in their
// file. In the second case, Read returns them.
type Tensor struct {
	Name string
	Dims []int
	Data []float32

	stored *stored // nil if Data holds the numbers
}

// Size is the number of elements.
func (t Tensor) Size() int {
	n := 1
	for _, d := range t.Dims {
		n *= d
	}
	return n
}

// Names of the tensors outside the layers.
const (
	NameEmbed       = "model.embed_tokens.weight"
	NameNorm        = "model.norm.weight"
	NameHead        = "lm_head.weight"
	NameValueWeight = "value_head.weight"
	NameValueBias   = "value_head.bias"
)

// Tensors lists the model's tensors, without data, in the order in which engines lay them out. Within a layer, q, k, v
// are adjacent, and gate, up are adjacent, so that each group is one matrix; so are the biases of q, k, v.
func (s Shape) Tensors() []Tensor {
	q, kv := s.Heads*s.HeadDim, s.KVHeads*s.HeadDim
	out := []Tensor{{Name: NameEmbed, Dims: []int{s.Vocab, s.Hidden}}}
	for i := range s.Layers {
		p := fmt.Sprintf("model.layers.%d.", i)
		out = append(out,
			Tensor{Name: p + "input_layernorm.weight", Dims: []int{s.Hidden}},
			Tensor{Name: p + "self_attn.q_proj.weight", Dims: []int{q, s.Hidden}},
			Tensor{Name: p + "self_attn.k_proj.weight", Dims: []int{kv, s.Hidden}},
			Tensor{Name: p + "self_attn.v_proj.weight", Dims: []int{kv, s.Hidden}},
		)
		if s.BiasesQKV() {
			out = append(out,
				Tensor{Name: p + "self_attn.q_proj.bias", Dims: []int{q}},
				Tensor{Name: p + "self_attn.k_proj.bias", Dims: []int{kv}},
				Tensor{Name: p + "self_attn.v_proj.bias", Dims: []int{kv}},
			)
		}
		if s.NormsHeads() {
			out = append(out,
				Tensor{Name: p + "self_attn.q_norm.weight", Dims: []int{s.HeadDim}},
				Tensor{Name: p + "self_attn.k_norm.weight", Dims: []int{s.HeadDim}},
			)
		}
		out = append(out,
			Tensor{Name: p + "self_attn.o_proj.weight", Dims: []int{s.Hidden, q}},
			Tensor{Name: p + "post_attention_layernorm.weight", Dims: []int{s.Hidden}},
			Tensor{Name: p + "mlp.gate_proj.weight", Dims: []int{s.FFN, s.Hidden}},
			Tensor{Name: p + "mlp.up_proj.weight", Dims: []int{s.FFN, s.Hidden}},
			Tensor{Name: p + "mlp.down_proj.weight", Dims: []int{s.Hidden, s.FFN}},
		)
	}
	out = append(out, Tensor{Name: NameNorm, Dims: []int{s.Hidden}})
	if s.Untied {
		out = append(out, Tensor{Name: NameHead, Dims: []int{s.Vocab, s.Hidden}})
	}
	if s.ValueHead {
		out = append(out, s.valueHead()...)
	}
	return out
}
