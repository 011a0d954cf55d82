package checkpoint

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
)

// ErrCorrupt marks a file that contradicts itself or other files of its checkpoint.
var ErrCorrupt = errors.New("corrupt checkpoint")

// ErrUnsupported marks a checkpoint of an architecture that the reader does not know.
var ErrUnsupported = errors.New("unsupported checkpoint")

// Shape fixes the sizes of a Qwen3-architecture decoder.
type Shape struct {
	Vocab     int // rows of the embedding
	Hidden    int // width of the residual stream
	Layers    int
	Heads     int // query heads
	KVHeads   int // key and value heads; divides Heads
	HeadDim   int // even
	FFN       int // width of the SwiGLU layer
	Positions int // longest sequence
	RopeTheta float64
	NormEps   float64
	// Untied gives the output head its own matrix. Otherwise the output head is the embedding.
	Untied bool
	// ValueHead adds a scalar head over the final hidden state, for a critic.
	ValueHead bool
	EOS       []int32 // ids that end a response; may be empty
	Pad       int32   // id of padding, or -1
}

// maxSide bounds every size, so that the product of two sizes cannot overflow.
const maxSide = 1 << 28

// Validate reports the first field with an impossible value.
func (s Shape) Validate() error {
	for _, f := range []struct {
		name string
		v    int
	}{
		{"vocab_size", s.Vocab}, {"hidden_size", s.Hidden}, {"num_hidden_layers", s.Layers},
		{"num_attention_heads", s.Heads}, {"num_key_value_heads", s.KVHeads}, {"head_dim", s.HeadDim},
		{"intermediate_size", s.FFN}, {"max_position_embeddings", s.Positions},
	} {
		if f.v < 1 || f.v > maxSide {
			return fmt.Errorf("%w: %s is %d", ErrUnsupported, f.name, f.v)
		}
	}
	switch {
	case s.Heads%s.KVHeads != 0:
		return fmt.Errorf(
			"%w: num_attention_heads %d is no multiple of num_key_value_heads %d", ErrUnsupported, s.Heads, s.KVHeads,
		)
	case s.HeadDim%2 != 0:
		return fmt.Errorf("%w: head_dim %d is odd", ErrUnsupported, s.HeadDim)
	case !(s.RopeTheta > 0) || math.IsInf(s.RopeTheta, 0):
		return fmt.Errorf("%w: rope_theta is %v", ErrUnsupported, s.RopeTheta)
	case !(s.NormEps >= 0) || math.IsInf(s.NormEps, 0):
		return fmt.Errorf("%w: rms_norm_eps is %v", ErrUnsupported, s.NormEps)
	}
	return nil
}

// Params counts the trainable numbers.
func (s Shape) Params() int64 {
	var n int64
	for _, t := range s.Tensors() {
		n += int64(t.Size())
	}
	return n
}

// configJSON is the part of transformers' Qwen3Config that this package reads.
type configJSON struct {
	ModelType        string          `json:"model_type"`
	Vocab            int             `json:"vocab_size"`
	Hidden           int             `json:"hidden_size"`
	FFN              int             `json:"intermediate_size"`
	Layers           int             `json:"num_hidden_layers"`
	Heads            int             `json:"num_attention_heads"`
	KVHeads          int             `json:"num_key_value_heads"`
	HeadDim          *int            `json:"head_dim"`
	Positions        int             `json:"max_position_embeddings"`
	NormEps          *float64        `json:"rms_norm_eps"`
	RopeTheta        *float64        `json:"rope_theta"`
	RopeParameters   *ropeJSON       `json:"rope_parameters"`
	RopeScaling      json.RawMessage `json:"rope_scaling"`
	Tied             *bool           `json:"tie_word_embeddings"`
	Act              string          `json:"hidden_act"`
	AttentionBias    bool            `json:"attention_bias"`
	UseSlidingWindow bool            `json:"use_sliding_window"`
	EOS              json.RawMessage `json:"eos_token_id"`
	Pad              *int32          `json:"pad_token_id"`
}

type ropeJSON struct {
	Type  string   `json:"rope_type"`
	Theta *float64 `json:"rope_theta"`
}

// parseConfig reads a config.json and rejects architectures that this program does not support. Absent fields take
// transformers' defaults for Qwen3.
func parseConfig(b []byte) (Shape, error) {
	var c configJSON
	if err := json.Unmarshal(b, &c); err != nil {
		return Shape{}, fmt.Errorf("%w: parse config.json: %w", ErrCorrupt, err)
	}
	if err := c.refuse(); err != nil {
		return Shape{}, err
	}
	s := Shape{
		Vocab: c.Vocab, Hidden: c.Hidden, Layers: c.Layers, Heads: c.Heads, KVHeads: c.KVHeads,
		HeadDim: 128, FFN: c.FFN, Positions: c.Positions, RopeTheta: 10000, NormEps: 1e-6, Pad: -1,
	}
	if c.HeadDim != nil {
		s.HeadDim = *c.HeadDim
	}
	if s.KVHeads == 0 {
		s.KVHeads = s.Heads
	}
	if s.Positions == 0 {
		s.Positions = 32768
	}
	if c.NormEps != nil {
		s.NormEps = *c.NormEps
	}
	if c.RopeTheta != nil {
		s.RopeTheta = *c.RopeTheta
	}
	if c.RopeParameters != nil && c.RopeParameters.Theta != nil {
		s.RopeTheta = *c.RopeParameters.Theta
	}
	s.Untied = c.Tied == nil || !*c.Tied
	if c.Pad != nil {
		s.Pad = *c.Pad
	}
	var err error
	if s.EOS, err = oneOrMany(c.EOS); err != nil {
		return Shape{}, fmt.Errorf("%w: config.json: eos_token_id: %w", ErrCorrupt, err)
	}
	return s, s.Validate()
}

func (c *configJSON) refuse() error {
	switch {
	case c.ModelType != "qwen3":
		return fmt.Errorf("%w: config.json: model_type is %q, want qwen3", ErrUnsupported, c.ModelType)
	case c.Act != "" && c.Act != "silu":
		return fmt.Errorf("%w: config.json: hidden_act is %q, want silu", ErrUnsupported, c.Act)
	case c.AttentionBias:
		return fmt.Errorf("%w: config.json: attention_bias is set", ErrUnsupported)
	case c.UseSlidingWindow:
		return fmt.Errorf("%w: config.json: use_sliding_window is set", ErrUnsupported)
	case len(c.RopeScaling) > 0 && string(c.RopeScaling) != "null":
		return fmt.Errorf("%w: config.json: rope_scaling is set", ErrUnsupported)
	case c.RopeParameters != nil && c.RopeParameters.Type != "" && c.RopeParameters.Type != "default":
		return fmt.Errorf("%w: config.json: rope_parameters.rope_type is %q", ErrUnsupported, c.RopeParameters.Type)
	}
	return nil
}

func oneOrMany(b json.RawMessage) ([]int32, error) {
	if len(b) == 0 || string(b) == "null" {
		return nil, nil
	}
	var many []int32
	if b[0] == '[' {
		return many, json.Unmarshal(b, &many)
	}
	var one int32
	if err := json.Unmarshal(b, &one); err != nil {
		return nil, err
	}
	return []int32{one}, nil
}

// marshalConfig writes the config.json that transformers' Qwen3ForCausalLM loads. It writes rope_theta both in the flat
// form of version 4 and in the rope_parameters of version 5, and the dtype in both forms too.
func marshalConfig(s Shape) []byte {
	m := map[string]any{
		"architectures":           []string{"Qwen3ForCausalLM"},
		"attention_bias":          false,
		"attention_dropout":       0.0,
		"dtype":                   "float32",
		"torch_dtype":             "float32",
		"head_dim":                s.HeadDim,
		"hidden_act":              "silu",
		"hidden_size":             s.Hidden,
		"initializer_range":       initStd,
		"intermediate_size":       s.FFN,
		"layer_types":             slices.Repeat([]string{"full_attention"}, s.Layers),
		"max_position_embeddings": s.Positions,
		"max_window_layers":       s.Layers,
		"model_type":              "qwen3",
		"num_attention_heads":     s.Heads,
		"num_hidden_layers":       s.Layers,
		"num_key_value_heads":     s.KVHeads,
		"rms_norm_eps":            s.NormEps,
		"rope_parameters":         map[string]any{"rope_theta": s.RopeTheta, "rope_type": "default"},
		"rope_theta":              s.RopeTheta,
		"sliding_window":          nil,
		"tie_word_embeddings":     !s.Untied,
		"use_cache":               true,
		"use_sliding_window":      false,
		"vocab_size":              s.Vocab,
	}
	putTokens(m, s)
	return marshalSorted(m)
}

// marshalGeneration writes a generation_config.json that samples the plain distribution.
func marshalGeneration(s Shape) []byte {
	m := map[string]any{"do_sample": true, "temperature": 1.0, "top_k": 0, "top_p": 1.0}
	putTokens(m, s)
	return marshalSorted(m)
}

func putTokens(m map[string]any, s Shape) {
	if len(s.EOS) > 0 {
		m["eos_token_id"] = s.EOS
	}
	if s.Pad >= 0 {
		m["pad_token_id"] = s.Pad
	}
}

// marshalSorted returns the same bytes for the same content, because encoding/json sorts the keys of maps.
func marshalSorted(m map[string]any) []byte {
	b, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		panic(err) // only numbers, strings and lists of them
	}
	return append(b, '\n')
}

// withDtype changes the dtype of a config.json to that of the weights that are written with it. It returns a
// config.json that already says so unchanged, byte for byte.
func withDtype(b []byte, dtype Dtype) ([]byte, error) {
	var m map[string]any
	if err := json.Unmarshal(b, &m); err != nil {
		return nil, fmt.Errorf("%w: parse config.json: %w", ErrCorrupt, err)
	}
	name := map[Dtype]string{F32: "float32", F16: "float16", BF16: "bfloat16"}[dtype]
	changed := false
	for _, k := range []string{"dtype", "torch_dtype"} {
		if v, ok := m[k]; ok && v != name {
			m[k], changed = name, true
		}
	}
	if !changed {
		return b, nil
	}
	return marshalSorted(m), nil
}
