package reward

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"unicode"
)

// Short-form BLEU: the order of BLEU is at most the candidate's length, so that a short correct answer scores 1.
//
//	N    = min(4, |c|), weights 1/N
//	p_n  = matches / (|c| − n + 1), each n-gram's matches clipped by its largest count in a reference
//	BP   = 1 if |c| > r, else exp(1 − r/|c|), r = the reference length nearest |c| (ties: the shorter)
//	BLEU = BP·exp(Σ_{n≤N} (1/N)·ln p_n), 0 where some p_n is 0
//
// Source: PRS + VSPO, equations 10–12; BLEU after Papineni et al. 2002. Departures: the paper does
// not say how to smooth (no smoothing; Smoothing replaces a match count of 0) nor what a token is
// (TokenizeQA).

// maxOrder is the longest n-gram of BLEU.
const maxOrder = 4

// BLEU says how to score. The zero value is the exact short form.
type BLEU struct {
	Smoothing float64 // what replaces a match count of 0, in [0, 1); 0 means none, 0.1 is usual
	Standard  bool    // always order 4: a candidate below four tokens scores 0
}

// ScoreText is Score over TokenizeQA.
func (b BLEU) ScoreText(candidate string, references []string) float64 {
	tokens := make([][]string, len(references))
	for i, r := range references {
		tokens[i] = TokenizeQA(r)
	}
	return b.Score(TokenizeQA(candidate), tokens)
}

// Score returns the BLEU of a candidate's tokens against several references, in [0, 1]. An empty candidate scores
// 0, and so does a candidate without references. The order of references does not matter. Time is linear in the
// number of tokens.
func (b BLEU) Score(candidate []string, references [][]string) float64 {
	orders := min(maxOrder, len(candidate))
	if orders == 0 || len(references) == 0 || b.Standard && orders < maxOrder {
		return 0
	}
	sum := 0.0
	for n := 1; n <= orders; n++ {
		matches := float64(clippedMatches(candidate, references, n))
		if matches == 0 {
			matches = b.Smoothing
		}
		if matches == 0 {
			return 0
		}
		sum += math.Log(matches / float64(len(candidate)-n+1))
	}
	return brevity(len(candidate), references) * math.Exp(sum/float64(orders))
}

// ngram is an n-gram; orders below four leave the rest "", and only n-grams of one order are compared.
type ngram [maxOrder]string

// countNgrams counts the n-grams of one order.
func countNgrams(tokens []string, n int) map[ngram]int {
	counts := make(map[ngram]int, len(tokens))
	for i := 0; i+n <= len(tokens); i++ {
		var g ngram
		copy(g[:], tokens[i:i+n])
		counts[g]++
	}
	return counts
}

// clippedMatches counts the candidate's n-grams of one order, each at most as often as the
// reference that has it most.
func clippedMatches(candidate []string, references [][]string, n int) int {
	have := countNgrams(candidate, n)
	most := map[ngram]int{}
	for _, r := range references {
		for g, count := range countNgrams(r, n) {
			most[g] = max(most[g], count)
		}
	}
	matches := 0
	for g, count := range have {
		matches += min(count, most[g])
	}
	return matches
}

// brevity is BP.
func brevity(candidate int, references [][]string) float64 {
	distance := func(r []string) int { return max(len(r)-candidate, candidate-len(r)) }
	nearest := len(slices.MinFunc(references, func(a, b []string) int {
		return cmp.Or(cmp.Compare(distance(a), distance(b)), cmp.Compare(len(a), len(b)))
	}))
	if candidate > nearest {
		return 1
	}
	return math.Exp(1 - float64(nearest)/float64(candidate))
}

// TokenizeQA cuts a text into words after NormalizeQA; Chinese and Japanese, which do not space
// their words, give a token per character.
func TokenizeQA(text string) []string {
	var spaced strings.Builder
	for _, r := range NormalizeQA(text) {
		if unspaced(r) {
			spaced.WriteString(" " + string(r) + " ")
		} else {
			spaced.WriteRune(r)
		}
	}
	return strings.Fields(spaced.String())
}

// unspaced reports whether a character belongs to a script that is written without spaces; the
// prolonged sound marks are shared by scripts and so listed by themselves.
func unspaced(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana) || r == 'ー' || r == 'ｰ'
}
