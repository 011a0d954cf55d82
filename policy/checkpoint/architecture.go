package checkpoint

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Architecture is a family of decoders, by the name that config.json gives as model_type. All have RMSNorm, rotary
// embedding, grouped-query attention and SwiGLU. They differ in what surrounds the projections of attention.
type Architecture string

// The architectures that this package reads. Qwen 2.5 is Qwen2 by its model_type, and SmolLM2 is Llama.
const (
	Qwen3   Architecture = "qwen3"   // norms queries and keys per head
	Qwen2   Architecture = "qwen2"   // adds biases to queries, keys and values
	Llama   Architecture = "llama"   // neither
	Mistral Architecture = "mistral" // neither; attention may be limited to a window
)

// architectures lists them with what config.json means if it leaves a field out (transformers' defaults).
var architectures = []struct {
	Name      Architecture
	class     string
	positions int
	kvHeads   int // 0 = as many as query heads
	window    int // 0 = none
}{
	{Name: Qwen3, class: "Qwen3ForCausalLM", positions: 32768},
	{Name: Qwen2, class: "Qwen2ForCausalLM", positions: 32768},
	{Name: Llama, class: "LlamaForCausalLM", positions: 2048},
	{Name: Mistral, class: "MistralForCausalLM", positions: 131072, kvHeads: 8, window: 4096},
}

// Family is the shape's architecture; a shape that names none is Qwen3's.
func (s Shape) Family() Architecture { return cmp.Or(s.Architecture, Qwen3) }

// NormsHeads reports whether queries and keys are normed per head.
func (s Shape) NormsHeads() bool { return s.Family() == Qwen3 }

// BiasesQKV reports whether biases are added to queries, keys and values.
func (s Shape) BiasesQKV() bool { return s.Family() == Qwen2 }

// checkArchitecture refuses an unknown architecture.
func checkArchitecture(a Architecture) (index int, err error) {
	var names []string
	for i, known := range architectures {
		if known.Name == a {
			return i, nil
		}
		names = append(names, string(known.Name))
	}
	slices.Sort(names)
	return 0, fmt.Errorf("%w: model_type is %q, want one of %s", ErrUnsupported, a, strings.Join(names, ", "))
}
