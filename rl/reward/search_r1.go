package reward

import (
	"fmt"
	"strings"
)

// Search-R1's score of a response:
//
//	s = 1 if the last <answer> block, stripped, agrees with some gold (EM, or sub-EM), else 0
//	s/4 where the text has more than 10 opening or more than 10 closing answer tags
//
// Source: the scorer that Search-R1 released, which ARLArena's search task and AEPO's QA use.
// Departure: of nested answer blocks the innermost is the answer.

const (
	searchTagLimit = 10   // with more answer tags of one kind, the response tried many answers
	searchSprayed  = 0.25 // factor on the score of such a response
)

// SearchR1 is the scorer as one choice of a method. The zero value compares by EM.
type SearchR1 struct {
	Metric QAMetric // "" means em; f1 multiplies like the others
}

// Validate names a field out of range.
func (s SearchR1) Validate() error {
	if err := QA(s).Validate(); err != nil {
		return fmt.Errorf("Search-R1: %w", err)
	}
	return nil
}

// Reward scores a whole response; without an answer block it is 0.
func (s SearchR1) Reward(text string, golds []string) (float64, error) {
	if err := s.Validate(); err != nil {
		return 0, err
	}
	answer, ok := LastAnswer(text)
	if !ok {
		return 0, nil
	}
	score, err := QA(s).Reward(strings.TrimFunc(answer, isSpace), golds)
	if err != nil {
		return 0, err
	}
	if strings.Count(text, answerOpen) > searchTagLimit || strings.Count(text, answerClose) > searchTagLimit {
		score *= searchSprayed
	}
	return score, nil
}
