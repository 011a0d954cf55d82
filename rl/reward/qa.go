package reward

import (
	"fmt"
	"strings"
	"unicode"
)

// Question answering by words:
//
//	normalise  lower → delete ASCII punctuation → the words a, an, the become spaces → squeeze spaces
//	EM         the prediction equals some gold
//	sub-EM     some gold is a substring of the prediction
//	F1         2PR/(P + R) over the multiset of words; the best of the golds
//
// all after normalising. Source: SQuAD's and HotpotQA's evaluation, as Search-R1, AEPO and PRS use
// them. Where either side of F1 is yes, no or noanswer and they differ, it is 0 (HotpotQA).
// Departures: texts that both normalise to nothing have F1 1, as EM has it, where the formula has
// 0/0; a lower-case letter is Go's, one for one.

// asciiPunctuation are the 32 marks that are deleted.
const asciiPunctuation = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"

// NormalizeQA strips a text to the words that are compared, one space between them.
func NormalizeQA(text string) string {
	text = strings.Map(func(r rune) rune {
		if strings.ContainsRune(asciiPunctuation, r) {
			return -1
		}
		return unicode.ToLower(r)
	}, text)
	return strings.Join(strings.FieldsFunc(dropArticles(text), isSpace), " ")
}

// dropArticles replaces a, an and the by a space where they are whole words: runs of letters and
// digits of any script, so that a mark that is neither ends a word.
func dropArticles(text string) string {
	var out strings.Builder
	out.Grow(len(text))
	start := -1
	flush := func(end int) {
		if start < 0 {
			return
		}
		switch word := text[start:end]; word {
		case "a", "an", "the":
			out.WriteByte(' ')
		default:
			out.WriteString(word)
		}
		start = -1
	}
	for i, r := range text {
		if unicode.IsLetter(r) || unicode.IsNumber(r) {
			if start < 0 {
				start = i
			}
			continue
		}
		flush(i)
		out.WriteRune(r)
	}
	flush(len(text))
	return out.String()
}

// isSpace is white space as Python's split and \s have it: Unicode's and the four separators.
func isSpace(r rune) bool { return unicode.IsSpace(r) || r >= 0x1c && r <= 0x1f }

// ExactMatch is EM.
func ExactMatch(prediction string, golds []string) bool {
	p := NormalizeQA(prediction)
	for _, gold := range golds {
		if NormalizeQA(gold) == p {
			return true
		}
	}
	return false
}

// SubMatch is sub-EM. A gold that normalises to nothing is in every prediction.
func SubMatch(prediction string, golds []string) bool {
	p := NormalizeQA(prediction)
	for _, gold := range golds {
		if strings.Contains(p, NormalizeQA(gold)) {
			return true
		}
	}
	return false
}

// F1 is the best overlap of words with any gold, in [0, 1]; 0 without golds.
func F1(prediction string, golds []string) float64 {
	p, best := NormalizeQA(prediction), 0.0
	for _, gold := range golds {
		best = max(best, overlap(p, NormalizeQA(gold)))
	}
	return best
}

// overlap is F1 of two normalised texts.
func overlap(prediction, gold string) float64 {
	if prediction == gold {
		return 1
	}
	if oneWordAnswer(prediction) || oneWordAnswer(gold) {
		return 0
	}
	p, g := strings.Fields(prediction), strings.Fields(gold)
	left := make(map[string]int, len(g))
	for _, word := range g {
		left[word]++
	}
	same := 0
	for _, word := range p {
		if left[word] > 0 {
			left[word]--
			same++
		}
	}
	if same == 0 {
		return 0
	}
	return 2 * float64(same) / float64(len(p)+len(g)) // 2PR/(P+R) with P = same/|p|, R = same/|g|
}

// oneWordAnswer reports an answer that is all right or all wrong.
func oneWordAnswer(normalized string) bool {
	switch normalized {
	case "yes", "no", "noanswer":
		return true
	}
	return false
}

// QAMetric names how a prediction is compared.
type QAMetric string

// The metrics.
const (
	QAExact QAMetric = "em"
	QASub   QAMetric = "sub_em"
	QAF1    QAMetric = "f1"
)

// QA compares a prediction with golds as one choice of a method. The zero value is EM, the
// baseline that PRS is held against.
type QA struct {
	Metric QAMetric // "" means em
}

// Validate names a field out of range.
func (q QA) Validate() error {
	switch q.Metric {
	case "", QAExact, QASub, QAF1:
		return nil
	}
	return fmt.Errorf("QA reward: metric must be %s, %s or %s, got %q", QAExact, QASub, QAF1, q.Metric)
}

// Reward is in [0, 1]; an unknown metric is an error.
func (q QA) Reward(prediction string, golds []string) (float64, error) {
	if err := q.Validate(); err != nil {
		return 0, err
	}
	switch q.Metric {
	case QAF1:
		return F1(prediction, golds), nil
	case QASub:
		return indicator(SubMatch(prediction, golds)), nil
	}
	return indicator(ExactMatch(prediction, golds)), nil
}
