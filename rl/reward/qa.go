package reward

import (
	"strings"

	"github.com/ropewalk/ropewalk/rl/choice"
	"github.com/ropewalk/ropewalk/rl/words"
)

// Question answering by words:
//
//	normalise  lower → delete ASCII punctuation → the words a, an, the become spaces → squeeze spaces
//	EM         the prediction equals some gold
//	sub-EM     some gold is a substring of the prediction
//	F1         2PR/(P + R) over the multiset of words; the best of the golds
//
// all after normalising. Source: SQuAD's and HotpotQA's evaluation, as Search-R1, AEPO and PRS use
// them. If either side of F1 is yes, no or noanswer and the sides differ, F1 is 0 (HotpotQA).
// Departures: a text of which nothing is left equals nothing, and articles stay where nothing else is left: else the
// answers "!!!" and "the" would equal the gold "A". Letters are lowered one by one as Go does.

var exactMatch = Declaration{
	Choice: choice.Choice{
		Name: "exact_match", Doc: "1 if the normalised answer equals a gold answer",
		Source: "SQuAD (Rajpurkar et al. 2016); Search-R1", Settings: exactMatchReward{},
	},
}

var wordF1 = Declaration{
	Choice: choice.Choice{
		Name: "f1", Doc: "overlap of the normalised answer's words with a gold answer's",
		Source: "SQuAD (Rajpurkar et al. 2016)", Settings: wordF1Reward{},
	},
}

// exactMatchReward and wordF1Reward compare the final answer by words; without one they are 0.
type (
	exactMatchReward struct{}
	wordF1Reward     struct{}
)

// Score is 1 if the answer equals the gold after normalising, else 0.
func (exactMatchReward) Score(t Trajectory, _ Outcome) (float64, error) {
	return indicator(t.Answered && ExactMatch(t.Answer, t.golds())), nil
}

// Score is the F1 of the answer's words.
func (wordF1Reward) Score(t Trajectory, _ Outcome) (float64, error) {
	if !t.Answered {
		return 0, nil
	}
	return F1(t.Answer, t.golds()), nil
}

// NormalizeQA strips a text to the words that are compared, one space between them.
func NormalizeQA(text string) string { return words.Normalize(text) }

// isSpace is white space as Python's split and \s have it: Unicode's and the four separators.
func isSpace(r rune) bool { return words.IsSpace(r) }

// ExactMatch is EM.
func ExactMatch(prediction string, golds []string) bool { return words.Exact(prediction, golds) }

// SubMatch is sub-EM. A gold that normalises to nothing must be the whole prediction.
func SubMatch(prediction string, golds []string) bool {
	p := NormalizeQA(prediction)
	for _, gold := range golds {
		g := NormalizeQA(gold)
		if g != "" && strings.Contains(p, g) || g == "" && ExactMatch(prediction, []string{gold}) {
			return true
		}
	}
	return false
}

// F1 is the best overlap of words with any gold, in [0, 1]; 0 without golds.
func F1(prediction string, golds []string) float64 { return words.F1(prediction, golds) }

// QAMetric names how a prediction is compared.
type QAMetric string

// The metrics.
const (
	QAExact QAMetric = "em"
	QASub   QAMetric = "sub_em"
	QAF1    QAMetric = "f1"
)
