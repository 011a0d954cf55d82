package analysis

import (
	"fmt"
	"maps"
	"slices"

	"github.com/ropewalk/ropewalk/internal/step/api"
)

// More returns the figures of an evaluation that not every one has, one a line: the score, exact match and F1, the
// judge's verdicts, success by part of a mix, and pass@k and pass^k of an evaluation of its own.
func (e Evaluation) More() (lines []string) {
	if e.Score != nil {
		lines = append(lines, "score        "+scoreWords(*e.Score))
	}
	if e.ExactMatch != nil {
		lines = append(lines, fmt.Sprintf("exact match  %s", *e.ExactMatch), fmt.Sprintf("F1           %s", *e.F1))
	}
	if e.Judged != nil {
		lines = append(lines, fmt.Sprintf("judged right %s", *e.Judged))
	}
	lines = append(lines, e.Debates.lines()...)
	for _, part := range slices.Sorted(maps.Keys(e.Summary.ByPart)) {
		lines = append(lines, fmt.Sprintf("%-12s %s", "part "+part, e.Summary.ByPart[part]))
	}
	if e.Tag != "evaluate" {
		return lines
	}
	for _, level := range slices.Sorted(maps.Keys(e.Summary.ByLevel)) {
		lines = append(lines, fmt.Sprintf("%-12s %s", "level "+level, e.Summary.ByLevel[level]))
	}
	for _, name := range slices.Sorted(maps.Keys(e.Summary.ByType)) {
		lines = append(lines, fmt.Sprintf("%-12s %s", name, e.Summary.ByType[name]))
	}
	if n := len(e.Passes.K); n > 0 {
		lines = append(lines, fmt.Sprintf("%-12s %s", fmt.Sprintf("mean@%d", e.Passes.K[n-1]), e.Summary.Rate))
	}
	for i, k := range e.Passes.K {
		lines = append(lines, fmt.Sprintf("%-12s %-22s  pass^%d  %s", fmt.Sprintf("pass@%d", k), e.Passes.PassAt[i], k,
			e.Passes.PassOf[i]))
	}
	return lines
}

// scoreWords is the mean score with its interval, if there is one.
func scoreWords(r api.Rate) string {
	if r.N == 0 {
		return fmt.Sprintf("%.4g", r.Success)
	}
	return fmt.Sprintf("%.4g [%.4g, %.4g]", r.Success, r.CILow, r.CIHigh)
}
