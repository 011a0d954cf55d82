package plan

import "github.com/ropewalk/ropewalk/policy/checkpoint"

// Model holds the sizes of a decoder.
type Model struct {
	Vocab, Hidden, Layers, Heads, KVHeads, HeadDim, FFN int

	Params int64 // all trainable numbers, an embedding that is also the output head once
	Tied   bool  // the output head is the embedding
}

// Of returns the sizes of a checkpoint's shape.
func Of(s checkpoint.Shape) Model {
	return Model{
		Vocab: s.Vocab, Hidden: s.Hidden, Layers: s.Layers, Heads: s.Heads, KVHeads: s.KVHeads, HeadDim: s.HeadDim,
		FFN:    s.FFN,
		Params: s.Params(), Tied: !s.Untied,
	}
}

// matmulParams returns the parameters that each token is multiplied with: all except the embedding table that only
// looks tokens up.
func (m Model) matmulParams() int64 {
	if m.Tied {
		return m.Params
	}
	return m.Params - int64(m.Vocab)*int64(m.Hidden)
}

// TrainFlops returns the model flops of one forward and backward pass over rows of the given lengths, in tokens. It
// counts 6 for each token and parameter, and 12·heads·width for each pair of tokens in which one attends to the other
// (PaLM, appendix B, with half of all pairs for causal attention).
func (m Model) TrainFlops(lengths ...int) float64 {
	var tokens, pairs float64
	for _, n := range lengths {
		tokens += float64(n)
		pairs += float64(n) * float64(n+1) / 2
	}
	return 6*float64(m.matmulParams())*tokens + 12*float64(m.Layers)*float64(m.Heads)*float64(m.HeadDim)*pairs
}

// GenerateFlops returns the model flops of one token after a prefix of n tokens.
func (m Model) GenerateFlops(n int) float64 {
	return 2*float64(m.matmulParams()) + 4*float64(m.Layers)*float64(m.Heads)*float64(m.HeadDim)*float64(n+1)
}
