package reward

import (
	"fmt"
	"strings"
)

// A judge is a language model that sees the question, the response and the reference and prints one word. The caller
// asks it; this file parses what it printed.
//
//	R_judge = 1 for Match, 0 for Mismatch
//
// Source: PRS + VSPO, §Long-form QA and its prompt. Departures: the paper does not say how to score an answer outside
// the format. The caller asks again; if no attempt can be read, the score is 0.

// Judgement is a judge's verdict.
type Judgement string

// The judgements.
const (
	Match      Judgement = "match"
	Mismatch   Judgement = "mismatch"
	Unreadable Judgement = "unreadable" // no attempt was one of the two words
)

// ratingLabel may precede the word, because the prompt asks for it.
const ratingLabel = "<evaluation rating>:"

// ReadJudgement parses what a judge printed: one of the two words, in any case, with optional space around it and
// optionally the prompt's label before it. Any other text is Unreadable and ok is false, for an explanation may
// contain both words.
func ReadJudgement(output string) (j Judgement, ok bool) {
	const longest = 256 // a longer output is unreadable in any case
	output = strings.TrimSpace(output)
	if len(output) > longest {
		return Unreadable, false
	}
	output, _ = strings.CutPrefix(strings.ToLower(output), ratingLabel)
	switch j = Judgement(strings.TrimSpace(output)); j {
	case Match, Mismatch:
		return j, true
	}
	return Unreadable, false
}

// FirstJudgement is the first of a judge's attempts that can be read, Unreadable without one.
func FirstJudgement(outputs []string) Judgement {
	for _, output := range outputs {
		if j, ok := ReadJudgement(output); ok {
			return j
		}
	}
	return Unreadable
}

// Validate reports an unknown judgement.
func (j Judgement) Validate() error {
	switch j {
	case Match, Mismatch, Unreadable:
		return nil
	}
	return fmt.Errorf("judgement must be %s, %s or %s, got %q", Match, Mismatch, Unreadable, j)
}

// Score is 1 for Match, else 0.
func (j Judgement) Score() float64 { return indicator(j == Match) }
