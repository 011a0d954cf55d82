// Package words compares answers by their words, as SQuAD's and HotpotQA's evaluations do.
//
//	Normalize  lower → delete ASCII punctuation → the words a, an, the become spaces → squeeze spaces
//	Key        the same; articles stay where nothing else is left, and a text without a word equals nothing
//	Exact      the answer equals some gold after that
//	F1         2PR/(P + R) over the multiset of words; the best of the golds
//
// Package rl/reward has the sources and the departures from them.
package words

import (
	"strings"
	"unicode"
)

// Punctuation holds the 32 marks that Normalize deletes.
const Punctuation = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"

// Normalize strips a text to the words that are compared, one space between them.
func Normalize(text string) string {
	return strings.Join(strings.FieldsFunc(dropArticles(stripPunctuation(text)), IsSpace), " ")
}

// stripPunctuation returns a text in lower case without punctuation.
func stripPunctuation(text string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(Punctuation, r) {
			return -1
		}
		return unicode.ToLower(r)
	}, text)
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

// IsSpace is white space as Python's split and \s have it: Unicode's and the four separators.
func IsSpace(r rune) bool { return unicode.IsSpace(r) || r >= 0x1c && r <= 0x1f }

// Key is the normal form by which texts are compared. Articles stay where nothing else is left, so that the option A is
// an answer. It is "" for a text without a word, which equals nothing.
func Key(text string) string {
	if normal := Normalize(text); normal != "" {
		return normal
	}
	return strings.Join(strings.FieldsFunc(stripPunctuation(text), IsSpace), " ")
}

// Exact reports whether an answer equals one of the golds.
func Exact(answer string, golds []string) bool {
	p := Key(answer)
	for _, gold := range golds {
		if p != "" && Key(gold) == p {
			return true
		}
	}
	return false
}

// F1 is the best overlap of words with any gold, in [0, 1]; 0 without golds.
func F1(prediction string, golds []string) float64 {
	p, best := Key(prediction), 0.0
	for _, gold := range golds {
		best = max(best, overlap(p, Key(gold)))
	}
	return best
}

// overlap is F1 of two normalised texts.
func overlap(prediction, gold string) float64 {
	if prediction == "" || gold == "" {
		return 0
	}
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
