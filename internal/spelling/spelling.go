// Package spelling finds the name that a misspelt word was meant to be.
package spelling

import (
	"slices"
	"strings"
)

// longest is the longest word that is compared, in bytes: no name is longer, and the comparison takes quadratic time.
const longest = 64

// Nearest returns the candidate with the smallest edit distance to a word; the first one wins a tie. Case does not
// count. It returns "" if no candidate is near enough to be a typing error.
func Nearest(word string, candidates []string) string {
	if near := AllNearest(word, candidates); len(near) > 0 {
		return near[0]
	}
	return ""
}

// AllNearest returns the candidates with the smallest edit distance to a word, in their order, or none if no candidate
// is near enough to be a typing error.
func AllNearest(word string, candidates []string) []string {
	if word == "" || len(word) > longest {
		return nil
	}
	var best []string
	at := max(1, len(word)/3)
	for _, c := range candidates {
		switch d := Distance(strings.ToLower(word), strings.ToLower(c)); {
		case d < at:
			best, at = []string{c}, d
		case d == at && d < len(word): // a word of which nothing is left resembles every short name
			best = append(best, c)
		}
	}
	return best
}

// OrList joins names with commas and "or".
func OrList(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

// Distance is the restricted Damerau-Levenshtein distance in runes. It counts insertions, deletions, substitutions and
// swaps of neighbours.
func Distance(a, b string) int {
	s, t := []rune(a), []rune(b)
	rows := make([][]int, len(s)+1)
	for i := range rows {
		rows[i] = make([]int, len(t)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(s); i++ {
		for j := 1; j <= len(t); j++ {
			change := rows[i-1][j-1]
			if s[i-1] != t[j-1] {
				change++
			}
			rows[i][j] = slices.Min([]int{change, rows[i-1][j] + 1, rows[i][j-1] + 1})
			if i > 1 && j > 1 && s[i-1] == t[j-2] && s[i-2] == t[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(s)][len(t)]
}
