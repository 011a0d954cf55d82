package analysis

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/internal/terminal"
	"github.com/ropewalk/ropewalk/schema"
)

// Judgement counts one verdict of a judge.
type Judgement struct {
	Model     string `json:"model"`
	Criterion string `json:"criterion"` // what the judge was asked
	Verdict   string `json:"verdict"`   // match, mismatch or none
	N         int    `json:"n"`
}

// noVerdict stands for an answer on which the judge gave no verdict.
const noVerdict = "none"

// judgements counts rows by model, criterion and verdict, in this order.
func judgements(rows []schema.JudgementRow) []Judgement {
	counts := map[Judgement]int{}
	for _, r := range rows {
		verdict := r.Verdict
		if r.Excluded != nil {
			verdict = noVerdict
		}
		counts[Judgement{Model: r.Model, Criterion: r.Criterion, Verdict: verdict}]++
	}
	var out []Judgement
	for j, n := range counts {
		j.N = n
		out = append(out, j)
	}
	slices.SortFunc(out, func(a, b Judgement) int {
		return cmp.Or(cmp.Compare(a.Model, b.Model), cmp.Compare(a.Criterion, b.Criterion),
			cmp.Compare(a.Verdict, b.Verdict))
	})
	return out
}

// judgedWords says what a step's judge found: "judge m: grounded: 12 match, 3 mismatch, 1 without a verdict".
func judgedWords(of []Judgement) (lines []string) {
	for len(of) > 0 {
		first := of[0]
		n := slices.IndexFunc(of, func(j Judgement) bool {
			return j.Model != first.Model || j.Criterion != first.Criterion
		})
		if n < 0 {
			n = len(of)
		}
		var parts []string
		for _, j := range of[:n] {
			if j.Verdict == noVerdict {
				parts = append(parts, fmt.Sprintf("%d without a verdict", j.N))
				continue
			}
			parts = append(parts, fmt.Sprintf("%d %s", j.N, j.Verdict))
		}
		lines = append(lines, fmt.Sprintf("judge %s, %s: %s", terminal.Line(first.Model), first.Criterion,
			strings.Join(parts, ", ")))
		of = of[n:]
	}
	return lines
}

// judgedLine says what the judge found of one trajectory.
func (e Episode) judgedLine() string {
	j := e.Judgement
	if j.Excluded != nil {
		return fmt.Sprintf("judged     no verdict by %s: %s", terminal.Line(j.Model), terminal.Line(*j.Excluded))
	}
	return fmt.Sprintf("judged     %s: %s, by %s (%d requests)", j.Criterion, j.Verdict, terminal.Line(j.Model),
		j.Attempts)
}
