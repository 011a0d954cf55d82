package checkpoint

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/ropewalk/ropewalk/internal/badinput"
)

// ErrCorrupt marks a file that contradicts itself or other files of its checkpoint.
var ErrCorrupt = errors.New("corrupt checkpoint")

// ErrUnsupported marks a checkpoint of an architecture that the reader does not know.
var ErrUnsupported = errors.New("unsupported checkpoint")

// Shape fixes the architecture and the sizes of a decoder.
type Shape struct {
	Architecture Architecture // "" = Qwen3

	Vocab     int // rows of the embedding
	Hidden    int // width of the residual stream
	Layers    int
	Heads     int // query heads
	KVHeads   int // key and value heads; divides Heads
	HeadDim   int // even
	FFN       int // width of the SwiGLU layer
	Positions int // longest sequence; at most the window, if attention is limited to one
	RopeTheta float64
	Rope      RopeScaling
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
	if _, err := checkArchitecture(s.Family()); err != nil {
		return err
	}
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
	return s.Rope.validate()
}

// Params counts the trainable numbers.
func (s Shape) Params() int64 {
	var n int64
	for _, t := range s.Tensors() {
		n += int64(t.Size())
	}
	return n
}

// configJSON is the part of transformers' configurations that this package reads.
type configJSON struct {
	ModelType        Architecture    `json:"model_type"`
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
	RopeScaling      *ropeJSON       `json:"rope_scaling"`
	Tied             *bool           `json:"tie_word_embeddings"`
	Act              string          `json:"hidden_act"`
	AttentionBias    bool            `json:"attention_bias"`
	MLPBias          bool            `json:"mlp_bias"`
	UseSlidingWindow bool            `json:"use_sliding_window"`
	SlidingWindow    json.RawMessage `json:"sliding_window"`
	Quantization     json.RawMessage `json:"quantization_config"`
	EOS              json.RawMessage `json:"eos_token_id"`
	Pad              *int32          `json:"pad_token_id"`
}

// ParseConfig reads a config.json, without the model's other files, and rejects architectures that this program does
// not support. Absent fields take transformers' defaults for the architecture. The errors are ErrCorrupt and
// ErrUnsupported.
func ParseConfig(b []byte) (Shape, error) {
	var c configJSON
	if err := json.Unmarshal(b, &c); err != nil {
		return Shape{}, fmt.Errorf("%w: parse config.json: %w", ErrCorrupt, badinput.JSON(err))
	}
	of, err := checkArchitecture(c.ModelType)
	if err != nil {
		return Shape{}, fmt.Errorf("config.json: %w", err)
	}
	if err := c.refuse(); err != nil {
		return Shape{}, err
	}
	s := Shape{
		Vocab: c.Vocab, Hidden: c.Hidden, Layers: c.Layers, Heads: c.Heads,
		KVHeads: cmp.Or(c.KVHeads, architectures[of].kvHeads, c.Heads), HeadDim: c.headDim(), FFN: c.FFN,
		Positions: cmp.Or(c.Positions, architectures[of].positions),
		RopeTheta: or(c.RopeTheta, 10000), NormEps: or(c.NormEps, 1e-6), Pad: -1,
	}
	if c.ModelType != Qwen3 {
		s.Architecture = c.ModelType
	}
	for _, r := range []*ropeJSON{c.RopeScaling, c.RopeParameters} {
		if r == nil {
			continue
		}
		s.RopeTheta = or(r.Theta, s.RopeTheta)
		if s.Rope, err = r.scaling(s.Positions); err != nil {
			return Shape{}, fmt.Errorf("config.json: %w", err)
		}
	}
	s.Untied = c.Tied == nil || !*c.Tied
	if c.Pad != nil {
		s.Pad = *c.Pad
	}
	window, err := c.window(architectures[of].window)
	if err != nil {
		return Shape{}, err
	}
	if window > 0 {
		s.Positions = min(s.Positions, window)
	}
	if s.EOS, err = oneOrMany(c.EOS); err != nil {
		return Shape{}, fmt.Errorf("%w: config.json: eos_token_id: %w", ErrCorrupt, err)
	}
	return s, s.Validate()
}

// headDim is head_dim, or what it is for an architecture that leaves it out.
func (c *configJSON) headDim() int {
	switch {
	case c.HeadDim != nil:
		return *c.HeadDim
	case c.ModelType == Qwen3:
		return 128
	case c.Heads > 0:
		return c.Hidden / c.Heads
	}
	return 0
}

// window returns how many tokens attention reaches back, or 0 if it reaches all. Sequences within the window are
// attended to whole, so a limit of the sequences to the window makes full attention exact.
func (c *configJSON) window(absent int) (int, error) {
	if c.ModelType != Mistral && !c.UseSlidingWindow {
		return 0, nil
	}
	if string(c.SlidingWindow) == "null" {
		return 0, nil
	}
	n := absent
	if len(c.SlidingWindow) > 0 {
		if err := json.Unmarshal(c.SlidingWindow, &n); err != nil {
			return 0, fmt.Errorf("%w: config.json: sliding_window: %w", ErrCorrupt, badinput.JSON(err))
		}
	} else if absent == 0 {
		n = 4096 // transformers' default where use_sliding_window is set
	}
	if n < 1 {
		return 0, fmt.Errorf("%w: config.json: sliding_window is %d", ErrCorrupt, n)
	}
	return n, nil
}

func (c *configJSON) refuse() error {
	switch {
	case c.Act != "" && c.Act != "silu":
		return fmt.Errorf("%w: config.json: hidden_act is %q, want silu", ErrUnsupported, c.Act)
	case c.AttentionBias:
		return fmt.Errorf("%w: config.json: attention_bias is set", ErrUnsupported)
	case c.MLPBias:
		return fmt.Errorf("%w: config.json: mlp_bias is set", ErrUnsupported)
	case len(c.Quantization) > 0 && string(c.Quantization) != "null":
		return fmt.Errorf("%w: config.json: quantization_config is set: convert the weights to float32 or bfloat16",
			ErrUnsupported)
	}
	return nil
}

func oneOrMany(b json.RawMessage) ([]int32, error) {
	if len(b) == 0 || string(b) == "null" {
		return nil, nil
	}
	var many []int32
	if b[0] == '[' {
		return many, badinput.JSON(json.Unmarshal(b, &many))
	}
	var one int32
	if err := json.Unmarshal(b, &one); err != nil {
		return nil, badinput.JSON(err)
	}
	return []int32{one}, nil
}

// marshalConfig writes the config.json that transformers' class of the architecture loads. It writes rope_theta both in
// the flat form of version 4 and in the rope_parameters of version 5, and the dtype in both forms too.
func marshalConfig(s Shape) []byte {
	of, err := checkArchitecture(s.Family())
	if err != nil {
		panic(err) // the shape is validated
	}
	m := map[string]any{
		"architectures":           []string{architectures[of].class},
		"attention_dropout":       0.0,
		"dtype":                   "float32",
		"torch_dtype":             "float32",
		"head_dim":                s.HeadDim,
		"hidden_act":              "silu",
		"hidden_size":             s.Hidden,
		"initializer_range":       initStd,
		"intermediate_size":       s.FFN,
		"max_position_embeddings": s.Positions,
		"model_type":              string(s.Family()),
		"num_attention_heads":     s.Heads,
		"num_hidden_layers":       s.Layers,
		"num_key_value_heads":     s.KVHeads,
		"rms_norm_eps":            s.NormEps,
		"rope_parameters":         s.Rope.json(s.RopeTheta),
		"rope_theta":              s.RopeTheta,
		"tie_word_embeddings":     !s.Untied,
		"use_cache":               true,
		"vocab_size":              s.Vocab,
	}
	switch s.Family() {
	case Qwen3, Qwen2:
		m["layer_types"] = slices.Repeat([]string{"full_attention"}, s.Layers)
		m["max_window_layers"], m["sliding_window"], m["use_sliding_window"] = s.Layers, nil, false
	case Mistral:
		m["sliding_window"] = nil
	}
	if s.Family() == Qwen3 || s.Family() == Llama {
		m["attention_bias"] = false
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
		return nil, fmt.Errorf("%w: parse config.json: %w", ErrCorrupt, badinput.JSON(err))
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
