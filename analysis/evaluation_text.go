package analysis

import (
	"fmt"
	"maps"
	"slices"
)

// More returns the figures of an evaluation that not every one has, one a line: the score, exact match and F1, and
// pass@k and pass^k of an evaluation of its own.
func (e Evaluation) More() (lines []string) {
	if e.Score != nil {
		lines = append(lines, fmt.Sprintf("score        %.4g", *e.Score))
	}
	if e.ExactMatch != nil {
		lines = append(lines, fmt.Sprintf("exact match  %s", *e.ExactMatch), fmt.Sprintf("F1           %s", *e.F1))
	}
	if e.Tag != "evaluate" {
		return lines
	}
	for _, level := range slices.Sorted(maps.Keys(e.Summary.ByLevel)) {
		lines = append(lines, fmt.Sprintf("%-12s %s", "level "+level, e.Summary.ByLevel[level]))
	}
	for i, k := range e.Passes.K {
		lines = append(lines, fmt.Sprintf("%-12s %-22s  pass^%d  %s", fmt.Sprintf("pass@%d", k), e.Passes.PassAt[i], k,
			e.Passes.PassOf[i]))
	}
	return lines
}
