package report

import (
	"math"
	"strings"
	"unicode/utf8"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/policy/tokenizer"
	"github.com/ropewalk/ropewalk/schema"
)

// Piece is a token of an episode as text; tokens that form one character together are one piece. NaN is an unknown
// number.
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
	if !w.decodes(t) {
		return plain(t, advantages)
	}
	var out []Piece
	open := "" // bytes of a character that is not complete
	for i, id := range t.TokenIDs {
		p := Piece{Written: i >= int(t.ContextTokens), LogProb: at(t.LogProbs, i), Entropy: at(t.Entropies, i),
			Advantage: at(advantages, i)}
		text := w.tokens.Decode([]int32{id})
		if open != "" && out[len(out)-1].Written == p.Written {
			open += text
			out[len(out)-1].join(open, p)
		} else {
			open, p.Text = text, text
			out = append(out, p)
		}
		if complete(open) {
			open = ""
		}
	}
	for i := range out {
		out[i].Text = schema.Text(out[i].Text)
	}
	return out
}

// join adds a token that continues a piece's character: log-probabilities add up, and the largest entropy is kept.
func (p *Piece) join(text string, next Piece) {
	p.Text = text
	p.LogProb += next.LogProb
	p.Entropy = math.Max(p.Entropy, next.Entropy)
}

// complete reports whether text ends with a whole character.
func complete(text string) bool {
	for n := 1; n <= min(utf8.UTFMax, len(text)); n++ {
		if tail := text[len(text)-n:]; utf8.RuneStart(tail[0]) {
			return utf8.FullRuneInString(tail)
		}
	}
	return true
}

// decodes reports whether the tokenizer reproduces the recorded text of the turn.
func (w pieceWriter) decodes(t schema.TurnRow) bool {
	if w.tokens == nil || w.tokens.Check(t.TokenIDs) != nil {
		return false
	}
	return strings.HasPrefix(schema.Text(w.tokens.Decode(t.TokenIDs[t.ContextTokens:])), strings.TrimSpace(t.Response))
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
