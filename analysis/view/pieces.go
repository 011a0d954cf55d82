package view

import (
	"math"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/policy/tokenizer"
	"github.com/ropewalk/ropewalk/rl/loss"
	"github.com/ropewalk/ropewalk/schema"
)

// Pieces are a turn's tokens as text, in columns of equal length. A column of numbers is nil where the record has none
// of the whole trajectory. Context that the policy did not write is one piece.
type Pieces struct {
	Text    []string `json:"text"`
	Written []bool   `json:"written"` // by the policy
	Mask    []int32  `json:"mask"`    // 1 where the update may learn from the piece
	// The numbers of pieces that the policy wrote; 0 elsewhere.
	LogProb []float64 `json:"logprob,omitempty"` // of the policy that wrote it
	Entropy []float64 `json:"entropy,omitempty"` // nats
	// Ratio is the logarithm of the probability that the trainer computed before the update, over the writer's, in the
	// bounds of the losses. It is recorded where the recipe has the trainer compute it.
	Ratio     []float64 `json:"ratio,omitempty"`
	Reference []float64 `json:"reference,omitempty"` // logarithm of the writer's probability over the reference's
	Advantage []float64 `json:"advantage,omitempty"` // times the weight, as the update saw it
	Value     []float64 `json:"value,omitempty"`     // of the critic
}

// piecesOf splits every turn of a trajectory.
func piecesOf(c analysis.Closeup, tokens tokenizer.Codec) []Pieces {
	out := make([]Pieces, len(c.Turns))
	from := 0
	for i, t := range c.Turns {
		numbers := numbersOf(c, from, len(t.TokenIDs))
		from += len(t.TokenIDs)
		split, ok := analysis.SplitTurn(tokens, t, true)
		if !ok {
			out[i] = recorded(t, numbers)
		}
		for _, s := range split {
			out[i].Text, out[i].Written = append(out[i].Text, s.Text), append(out[i].Written, s.Written)
			out[i].start(numbers, s.From)
			for more := s.From + 1; more < s.To; more++ {
				out[i].join(numbers, more)
			}
		}
	}
	return out
}

// numbers are a turn's part of the trajectory's columns.
type numbers struct {
	mask                                                    []int32
	logProbs, entropies, old, reference, advantages, values []float32
}

func numbersOf(c analysis.Closeup, from, n int) numbers {
	part := func(all []float32) []float32 {
		if len(all) < from+n {
			return nil
		}
		return all[from : from+n]
	}
	t := c.Tokens
	out := numbers{logProbs: part(t.LogProbs), entropies: part(t.Entropies), old: part(t.OldLogProbs),
		reference: part(t.ReferenceLogProbs), advantages: part(t.Advantages), values: part(c.Values)}
	if len(t.Mask) >= from+n {
		out.mask = t.Mask[from : from+n]
	}
	return out
}

// start appends a token's numbers as those of a new piece.
func (p *Pieces) start(n numbers, i int) {
	mask := int32(0)
	if i < len(n.mask) {
		mask = n.mask[i]
	}
	p.Mask = append(p.Mask, mask)
	p.LogProb = grown(p.LogProb, n.logProbs, i)
	p.Entropy = grown(p.Entropy, n.entropies, i)
	p.Advantage = grown(p.Advantage, n.advantages, i)
	p.Value = grown(p.Value, n.values, i)
	if n.old != nil && n.logProbs != nil {
		ratio := difference(mask, n.old[i], n.logProbs[i])
		p.Ratio = append(p.Ratio, math.Max(-loss.LogRatioClamp, math.Min(loss.LogRatioClamp, ratio)))
	}
	if n.reference != nil && n.logProbs != nil {
		p.Reference = append(p.Reference, difference(mask, n.logProbs[i], n.reference[i]))
	}
}

// join adds a token's numbers to the last piece: logarithms add up, and the largest entropy is kept.
func (p *Pieces) join(n numbers, i int) {
	last := len(p.Mask) - 1
	var next Pieces
	next.start(n, i)
	for _, sum := range [][2][]float64{{p.LogProb, next.LogProb}, {p.Ratio, next.Ratio},
		{p.Reference, next.Reference}} {
		if sum[0] != nil {
			sum[0][last] += sum[1][0]
		}
	}
	if p.Entropy != nil {
		p.Entropy[last] = math.Max(p.Entropy[last], next.Entropy[0])
	}
	p.Mask[last] = max(p.Mask[last], next.Mask[0])
}

func grown(column []float64, values []float32, i int) []float64 {
	if values == nil {
		return nil
	}
	return append(column, finite(float64(values[i])))
}

// difference is 0 outside the loss mask, where other models' outputs were not computed.
func difference(mask int32, a, b float32) float64 {
	if mask == 0 {
		return 0
	}
	return finite(float64(a) - float64(b))
}

// finite replaces what JSON cannot hold by the nearest number that it can.
func finite(x float64) float64 {
	switch {
	case math.IsNaN(x):
		return 0
	case math.IsInf(x, 0):
		return math.Copysign(math.MaxFloat32, x)
	}
	return x
}

// recorded shows a turn whose tokens cannot be decoded by its texts, which have only the advantage of their first
// token.
func recorded(t schema.TurnRow, n numbers) Pieces {
	var out Pieces
	if t.Observation != "" {
		out.Text, out.Written = append(out.Text, t.Observation), append(out.Written, false)
		out.Mask = append(out.Mask, 0)
		out.Advantage = grown(out.Advantage, n.advantages, 0)
	}
	first := int(t.ContextTokens)
	if first >= len(t.TokenIDs) {
		return out
	}
	mask := int32(0)
	if first < len(n.mask) {
		mask = n.mask[first]
	}
	out.Text, out.Written, out.Mask = append(out.Text, t.Response), append(out.Written, true), append(out.Mask, mask)
	out.Advantage = grown(out.Advantage, n.advantages, first)
	return out
}
