package reward

import (
	"math"
	"unicode"

	"github.com/ropewalk/ropewalk/rl/choice"
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
	Smoothing float64 `min:"0" below:"1"` // what replaces a match count of 0, in [0, 1); 0 means none, 0.1 is usual
	Standard  bool    // always order 4: a candidate below four tokens scores 0
}

// Validate names a field out of range.
func (b BLEU) Validate() error { return choice.Check("BLEU: ", b) }

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
	numbers := map[string]int32{}
	c := number(candidate, numbers)
	refs := make([][]int32, len(references))
	for i, r := range references {
		refs[i] = number(r, numbers)
	}
	sum := 0.0
	for n := 1; n <= orders; n++ {
		matches := float64(clippedMatches(c, refs, n))
		if matches == 0 {
			matches = b.Smoothing
		}
		if matches == 0 {
			return 0
		}
		sum += math.Log(matches / float64(len(c)-n+1))
	}
	return brevity(len(c), refs) * math.Exp(sum/float64(orders))
}

// number replaces each token by its number, from 1.
func number(tokens []string, numbers map[string]int32) []int32 {
	out := make([]int32, len(tokens))
	for i, token := range tokens {
		id, ok := numbers[token]
		if !ok {
			id = int32(len(numbers) + 1)
			numbers[token] = id
		}
		out[i] = id
	}
	return out
}

// ngram is an n-gram; orders below four leave the rest 0, which no token has.
type ngram [maxOrder]int32

// countNgrams counts the n-grams of one order.
func countNgrams(tokens []int32, n int) map[ngram]int {
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
func clippedMatches(candidate []int32, references [][]int32, n int) int {
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
func brevity(candidate int, references [][]int32) float64 {
	nearest := len(references[0])
	for _, r := range references[1:] {
		d, best := abs(len(r)-candidate), abs(nearest-candidate)
		if d < best || d == best && len(r) < nearest {
			nearest = len(r)
		}
	}
	if candidate > nearest {
		return 1
	}
	return math.Exp(1 - float64(nearest)/float64(candidate))
}

func abs(n int) int {
	if n < 0 {
		return -n
	}
	return n
}

// TokenizeQA cuts a text into words after NormalizeQA; Chinese and Japanese, which do not space
// their words, give a token per character.
func TokenizeQA(text string) []string {
	var out []string
	word := []rune{}
	flush := func() {
		if len(word) > 0 {
			out = append(out, string(word))
			word = word[:0]
		}
	}
	for _, r := range NormalizeQA(text) {
		switch {
		case r == ' ':
			flush()
		case unspaced(r):
			flush()
			out = append(out, string(r))
		default:
			word = append(word, r)
		}
	}
	flush()
	return out
}

// unspaced reports whether a character belongs to a script that is written without spaces; the
// prolonged sound marks are shared by scripts and so listed by themselves.
func unspaced(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana) || r == 'ー' || r == 'ｰ'
}
