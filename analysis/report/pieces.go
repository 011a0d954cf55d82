package report

import (
	"math"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/policy/tokenizer"
	"github.com/ropewalk/ropewalk/schema"
)

// Piece is a token of an episode as text. Of tokens that form one character together, log-probabilities add up, and the
// largest entropy is kept. NaN is an unknown number.
type Piece struct {
	Text      string
	Written   bool // by the policy; else it is context
	LogProb   float64
	Entropy   float64 // nats
	Advantage float64 // times the row's weight, as the update saw it
}

// pieceWriter splits turns into pieces.
type pieceWriter struct {
	tokens tokenizer.Codec // nil where the record has none
	most   int             // tokens of an episode
	scale  float64         // the greatest |advantage| of the page
	layout analysis.Layout
}

// turn splits a turn into pieces; advantages belong to its tokens and are nil for a turn that is not in the batch.
func (w pieceWriter) turn(t schema.TurnRow, advantages []float32) []Piece {
	split, ok := analysis.SplitTurn(w.tokens, t, false)
	if !ok {
		return plain(t, advantages)
	}
	out := make([]Piece, len(split))
	for i, s := range split {
		p := Piece{Text: s.Text, Written: s.Written, LogProb: at(t.LogProbs, s.From), Entropy: at(t.Entropies, s.From),
			Advantage: at(advantages, s.From)}
		for more := s.From + 1; more < s.To; more++ {
			p.LogProb += at(t.LogProbs, more)
			p.Entropy = math.Max(p.Entropy, at(t.Entropies, more))
		}
		out[i] = p
	}
	return out
}

// plain shows a turn whose tokens cannot be decoded by its texts.
func plain(t schema.TurnRow, advantages []float32) []Piece {
	var out []Piece
	if t.Observation != "" {
		out = append(out, Piece{Text: t.Observation, LogProb: math.NaN(), Entropy: math.NaN(), Advantage: math.NaN()})
	}
	response := Piece{Text: t.Response, Written: true, LogProb: math.NaN(), Entropy: math.NaN(),
		Advantage: at(advantages, int(t.ContextTokens))}
	return append(out, response)
}

func at(values []float32, i int) float64 {
	if i >= len(values) {
		return math.NaN()
	}
	return float64(values[i])
}
