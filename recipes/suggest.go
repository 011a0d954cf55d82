package recipes

import (
	"slices"
	"strings"
)

// suggest says what an unknown name inside a section may have meant: the nearest name there,
// else the same name elsewhere, else what there is.
func suggest(parent *Field, name string, s scope) string {
	var names []string
	for _, c := range parent.Fields {
		if c.belongs(s) {
			names = append(names, c.Name)
		}
	}
	if near := nearest(name, names); near != "" {
		return "; did you mean " + join(parent.Path, near) + "?"
	}
	for _, f := range Fields() {
		if f.Name == name && f.belongs(s) {
			return "; did you mean " + f.Path + "?"
		}
	}
	return "; there are " + strings.Join(names, ", ")
}

// nearest returns the candidate at the smallest edit distance, the first of equals, or "" when
// none is near enough to be a slip of the hand.
func nearest(word string, candidates []string) string {
	if len(word) > 64 {
		return "" // no name is so long, and the distance is quadratic
	}
	best, at := "", 1+max(1, len(word)/3)
	for _, c := range candidates {
		if d := distance(strings.ToLower(word), c); d < at {
			best, at = c, d
		}
	}
	return best
}

// distance is the restricted Damerau-Levenshtein distance in runes: insertions, deletions,
// substitutions, and swaps of neighbours.
func distance(a, b string) int {
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
