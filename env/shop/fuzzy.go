package shop

import (
	"math"
	"slices"
	"strings"
	"unicode"
)

// tokenSetRatio is how alike two texts are, from 0 to 100: token_set_ratio of the Python package thefuzz, which WebShop
// compares attributes and options with. With the words that both have (s), and those that only one has (a and b),
// each sorted and joined, it is the best of the ratios of (s, s+a), (s, s+b) and (s+a, s+b), where
//
//	ratio(x, y) = 100 − 100 · (|x| + |y| − 2·lcs(x, y)) / (|x| + |y|)
//
// It is 100 if all words of one text are in the other, and 0 if a text has no word.
//
// Source: thefuzz 0.22.1 and the function of the same name in rapidfuzz, which thefuzz calls.
func tokenSetRatio(first, second string) int {
	a, b := wordSet(first), wordSet(second)
	if len(a) == 0 || len(b) == 0 {
		return 0
	}
	var both, onlyA, onlyB []string
	for _, w := range a {
		if slices.Contains(b, w) {
			both = append(both, w)
		} else {
			onlyA = append(onlyA, w)
		}
	}
	for _, w := range b {
		if !slices.Contains(a, w) {
			onlyB = append(onlyB, w)
		}
	}
	if len(both) > 0 && (len(onlyA) == 0 || len(onlyB) == 0) {
		return 100
	}
	x, y := []rune(strings.Join(onlyA, " ")), []rune(strings.Join(onlyB, " "))
	shared := len([]rune(strings.Join(both, " ")))
	gap := min(shared, 1) // the space between the shared words and the others
	best := ratio(len(x)+len(y)-2*commonSubsequence(x, y), 2*(shared+gap)+len(x)+len(y))
	if shared > 0 {
		best = max(best, ratio(gap+len(x), 2*shared+gap+len(x)), ratio(gap+len(y), 2*shared+gap+len(y)))
	}
	return int(math.RoundToEven(best))
}

// ratio is the similarity of two texts of a total length at a distance of insertions and deletions.
func ratio(distance, total int) float64 { return 100 - 100*float64(distance)/float64(total) }

// wordSet returns the different words of a text, sorted: in lower case, without the characters from U+0080 to U+00FF,
// and with every other character that is no letter or digit read as a space.
func wordSet(text string) []string {
	text = strings.Map(func(r rune) rune {
		switch {
		case r >= 0x80 && r <= 0xff:
			return -1
		case unicode.IsLetter(r) || unicode.IsNumber(r):
			return unicode.ToLower(r)
		}
		return ' '
	}, text)
	out := strings.Fields(text)
	slices.Sort(out)
	return slices.Compact(out)
}

// commonSubsequence is the length of the longest common subsequence.
func commonSubsequence(x, y []rune) int {
	row := make([]int, len(y)+1)
	for _, a := range x {
		diagonal := 0
		for k, b := range y {
			above := row[k+1]
			if a == b {
				row[k+1] = diagonal + 1
			} else {
				row[k+1] = max(above, row[k])
			}
			diagonal = above
		}
	}
	return row[len(y)]
}
