package reward

import (
	"strings"

	"github.com/ropewalk/ropewalk/rl/choice"
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
	Metric QAMetric `enum:"em|sub_em|f1"` // "" means em; f1 multiplies like the others
}

// Reward scores a whole response; without an answer block it is 0. An unknown metric is an error.
func (s SearchR1) Reward(text string, golds []string) (score float64, err error) {
	if err := choice.Check("Search-R1: ", s); err != nil {
		return 0, err
	}
	answer, ok := LastAnswer(text)
	if !ok {
		return 0, nil
	}
	switch answer = strings.TrimFunc(answer, isSpace); s.Metric {
	case QAF1:
		score = F1(answer, golds)
	case QASub:
		score = indicator(SubMatch(answer, golds))
	default:
		score = indicator(ExactMatch(answer, golds))
	}
	if strings.Count(text, answerOpen) > searchTagLimit || strings.Count(text, answerClose) > searchTagLimit {
		score *= searchSprayed
	}
	return score, nil
}
