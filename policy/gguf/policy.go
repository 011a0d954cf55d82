package gguf

import (
	"cmp"
	"fmt"
	"strconv"

	"github.com/ropewalk/ropewalk/policy/checkpoint"
)

// families are llama.cpp's names of the architectures. Mistral's models are called llama there.
var families = map[string]checkpoint.Architecture{
	"llama": checkpoint.Llama, "qwen2": checkpoint.Qwen2, "qwen3": checkpoint.Qwen3,
}

// shortest widens a number to the shortest decimal that is the same in single precision: 1e-5, not 9.99999974e-6.
func shortest(x float32) float64 {
	out, err := strconv.ParseFloat(strconv.FormatFloat(float64(x), 'g', -1, 32), 64)
	if err != nil {
		return float64(x) // an infinity
	}
	return out
}

// Shape reads the model's sizes from the entries. The errors name the entry.
func (f *File) Shape() (checkpoint.Shape, error) {
	name, _ := f.Text("general.architecture")
	family, ok := families[name]
	if !ok {
		return checkpoint.Shape{}, fmt.Errorf("%w: general.architecture is %q, want llama, qwen2 or qwen3",
			errUnsupported, name)
	}
	if err := f.refuse(name); err != nil {
		return checkpoint.Shape{}, err
	}
	size := func(key string) int {
		n, _ := f.Whole(name + "." + key)
		return int(n)
	}
	number := func(key string, absent float64) float64 {
		if x, ok := f.Number(name + "." + key); ok {
			return x
		}
		return absent
	}
	s := checkpoint.Shape{
		Hidden: size("embedding_length"), Layers: size("block_count"), Heads: size("attention.head_count"),
		KVHeads: cmp.Or(size("attention.head_count_kv"), size("attention.head_count")),
		HeadDim: size("attention.key_length"), FFN: size("feed_forward_length"), Positions: size("context_length"),
		RopeTheta: number("rope.freq_base", 10000), NormEps: number("attention.layer_norm_rms_epsilon", 1e-5), Pad: -1,
	}
	if family != checkpoint.Qwen3 {
		s.Architecture = family
	}
	if s.HeadDim == 0 && s.Heads > 0 {
		s.HeadDim = s.Hidden / s.Heads
	}
	if kind, _ := f.Text(name + ".rope.scaling.type"); kind == string(checkpoint.RopeLinear) {
		s.Rope = checkpoint.RopeScaling{Type: checkpoint.RopeLinear, Factor: number("rope.scaling.factor", 0)}
	}
	if embed, ok := f.tensors[whole[checkpoint.NameEmbed]]; ok {
		s.Vocab = embed.dims[0]
	}
	_, s.Untied = f.tensors[whole[checkpoint.NameHead]]
	f.ends(&s)
	if err := s.Validate(); err != nil {
		return s, fmt.Errorf("%s: %w", name, err)
	}
	return s, nil
}

// ends finds the ids that end a response.
func (f *File) ends(s *checkpoint.Shape) {
	for _, key := range []string{"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id"} {
		if id, ok := f.Whole(key); ok && (len(s.EOS) == 0 || s.EOS[0] != int32(id)) {
			s.EOS = append(s.EOS, int32(id))
		}
	}
	if id, ok := f.Whole("tokenizer.ggml.padding_token_id"); ok {
		s.Pad = int32(id)
	}
}

// refuse names what this program would leave out of the model.
func (f *File) refuse(name string) error {
	if n, ok := f.Whole(name + ".expert_count"); ok && n > 0 {
		return fmt.Errorf("%w: %s.expert_count is %d: mixtures of experts are not supported", errUnsupported, name, n)
	}
	switch kind, _ := f.Text(name + ".rope.scaling.type"); kind {
	case "", "none", string(checkpoint.RopeLinear):
	default:
		return fmt.Errorf("%w: %s.rope.scaling.type is %q, want none or linear", errUnsupported, name, kind)
	}
	if _, ok := f.tensors["rope_freqs.weight"]; ok {
		return fmt.Errorf("%w: tensor rope_freqs.weight: stretched frequencies are read from config.json alone; use "+
			"the model's folder", errUnsupported)
	}
	return nil
}

// Checkpoint returns the model. Its numbers stay in the file until they are read; they equal those that the package
// gguf gives. The tokenizer's files are not among its extra files.
func (f *File) Checkpoint() (*checkpoint.Checkpoint, error) {
	s, err := f.Shape()
	if err != nil {
		return nil, err
	}
	c := &checkpoint.Checkpoint{Shape: s, Extra: map[string][]byte{}}
	used := map[string]bool{}
	for _, want := range s.Tensors() {
		name, err := rename(want.Name)
		if err != nil {
			return nil, err
		}
		t, ok := f.tensors[name]
		if !ok {
			return nil, fmt.Errorf("%w: tensor %q is missing", checkpoint.ErrCorrupt, name)
		}
		if fmt.Sprint(t.dims) != fmt.Sprint(want.Dims) {
			return nil, fmt.Errorf("%w: tensor %q is %v, the entries want %v", checkpoint.ErrCorrupt, name, t.dims,
				want.Dims)
		}
		used[name] = true
		var source checkpoint.Source = t
		if interleaved(s, want.Name) {
			source = rotated{t, s.HeadDim}
		}
		c.Weights = append(c.Weights, checkpoint.TensorFrom(want.Name, want.Dims, source))
	}
	for name := range f.tensors {
		if !used[name] {
			return nil, fmt.Errorf("%w: tensor %q does not belong to a %s model", errUnsupported, name, s.Family())
		}
	}
	return c, nil
}
