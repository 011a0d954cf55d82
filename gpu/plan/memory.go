package plan

import (
	"fmt"
	"strings"
)

// Settings are the settings of an engine and a batch that decide how much memory an update needs.
type Settings struct {
	BFloat16      bool
	Checkpointing bool
	Offload       bool // the optimiser's states are kept in the host's memory
	States        int  // numbers that the optimiser keeps of each one that trains
	Ranks         int  // devices that share the model
	// Adapter is the adapter that trains while the model stays unchanged; nil = the whole model trains.
	Adapter *Adapter
	// Tokens is the number of tokens that go forward and backward together, over all ranks: a micro-batch, or one
	// longer row.
	Tokens int
	// Row is the longest row. One device computes a row, however many share the model; 0 = as if rows were cut evenly.
	Row int
}

// Memory is the peak that one device holds during an update, in bytes, by purpose.
type Memory struct {
	Weights     int64 `json:"weights"` // masters, and rounded copies
	Gradients   int64 `json:"gradients"`
	Optimizer   int64 `json:"optimizer"`
	Activations int64 `json:"activations"`
	Head        int64 `json:"head"` // logits of a piece of the tokens, and the head's own gradient
}

// Total returns the sum of all purposes.
func (m Memory) Total() int64 {
	return m.Weights + m.Gradients + m.Optimizer + m.Activations + m.Head
}

// String renders the estimate for people.
func (m Memory) String() string {
	parts := make([]string, 0, 5)
	for _, p := range []struct {
		name  string
		bytes int64
	}{{"weights", m.Weights}, {"gradients", m.Gradients}, {"optimiser", m.Optimizer}, {"activations", m.Activations},
		{"output head", m.Head}} {
		if p.bytes > 0 {
			parts = append(parts, p.name+" "+size(p.bytes))
		}
	}
	return fmt.Sprintf("%s a device (%s)", size(m.Total()), strings.Join(parts, ", "))
}

func size(bytes int64) string {
	if bytes < 1<<30 {
		return fmt.Sprintf("%.0f MiB", float64(bytes)/(1<<20))
	}
	return fmt.Sprintf("%.1f GiB", float64(bytes)/(1<<30))
}

// What a layer keeps for its backward pass: in widths of the hidden states, residuals and norms; in widths of all query
// and key heads, queries, keys, values and what attention gives, before and after rotation; in widths of the
// feed-forward layer, gate, up, their product and the activation. The engine's own choice is by the same rule
// (kept_per_token in its passes.py).
const (
	keptHidden = 5
	keptHeads  = 4
	keptFFN    = 4
)

// headBytes is what the logits of a piece take at most on a GPU (gpu/engine's CHUNK_BYTES).
const headBytes = 512 << 20

// UpdateMemory estimates an update.
func (m Model) UpdateMemory(s Settings) Memory {
	ranks := int64(max(1, s.Ranks))
	trained, width := m.Params, int64(4)
	if s.Adapter != nil {
		trained = m.AdapterParams(*s.Adapter)
	}
	if s.BFloat16 {
		width = 2
	}
	share := (trained + ranks - 1) / ranks
	out := Memory{Weights: 4 * share, Gradients: 4 * share, Optimizer: 4 * int64(s.States) * share}
	if s.BFloat16 {
		out.Weights += 2 * share
	}
	if s.Adapter != nil {
		out.Weights += width * ((m.Params + ranks - 1) / ranks)
	}
	if ranks > 1 {
		out.Weights += width * m.gathered()
	}
	if s.Offload {
		out.Optimizer = 0
	}
	tokens := max((int64(s.Tokens)+ranks-1)/ranks, int64(s.Row))
	out.Activations = width * tokens * m.keptPerToken(s)
	piece := max(1, headBytes/(4*int64(m.Vocab)))
	// Logits in float32, their gradient, and its rounding to the model's numbers; and the head's gradient before it is
	// added.
	out.Head = min(piece, max(1, tokens)) * int64(m.Vocab) * (4 + 4 + width)
	if s.Adapter == nil {
		out.Head += (4 + width) * int64(m.Vocab) * int64(m.Hidden)
	}
	return out
}

// gathered returns the parameters that FSDP holds unsharded at once: two layers, of which one is computed and one is in
// transfer, or the embedding.
func (m Model) gathered() int64 {
	embedding := int64(m.Vocab) * int64(m.Hidden)
	layers := m.Params - embedding
	if !m.Tied {
		layers -= embedding
	}
	return max(embedding, 2*layers/int64(max(1, m.Layers)))
}

// keptPerToken counts kept numbers per token. An adapter also keeps the product of A for each target.
func (m Model) keptPerToken(s Settings) int64 {
	layer := int64(keptHidden*m.Hidden + keptHeads*(m.Heads+m.KVHeads)*m.HeadDim + keptFFN*m.FFN)
	if s.Adapter != nil {
		layer += int64(s.Adapter.Rank * len(s.Adapter.Targets))
	}
	if s.Checkpointing {
		return int64(m.Layers)*int64(m.Hidden) + layer
	}
	return int64(m.Layers) * layer
}
