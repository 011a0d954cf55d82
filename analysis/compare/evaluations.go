package compare

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/internal/evaluation"
	"github.com/ropewalk/ropewalk/schema"
)

// Evaluation compares success on held-out problems after the same step of each run, or at the end of runs of different
// lengths.
type Evaluation struct {
	Name  string `json:"name"`  // warm start, step N, or last
	Steps []*int `json:"steps"` // of each run: 0 is the warm start, null that a run has no such evaluation
	// Against holds the difference to the base, paired by problem, for each later run; null without common problems.
	Against []*Paired `json:"against_base"`
}

// notEvaluated is the step of a run without the evaluation.
const notEvaluated = -2

// Paired is a difference to the base over all common problems, by their level and by their part of a mix.
type Paired struct {
	evaluation.Difference
	ByLevel map[string]evaluation.Difference `json:"by_level"`
	// ByPart is keyed by the label of a part of a mix; absent elsewhere.
	ByPart map[string]evaluation.Difference `json:"by_part,omitempty"`
}

// evaluations pairs the runs' evaluations by their steps, and the last ones if those are at different steps.
func evaluations(ctx context.Context, views []*analysis.Visible) ([]Evaluation, error) {
	seed, err := views[0].Seed(ctx)
	if err != nil {
		return nil, err
	}
	rows := make([]map[int][]schema.EvaluationRow, len(views))
	last, there := make([]int, len(views)), map[int]bool{}
	for i, v := range views {
		all, err := v.EvaluationRows(ctx)
		if err != nil {
			return nil, err
		}
		rows[i], last[i] = map[int][]schema.EvaluationRow{}, notEvaluated
		for _, e := range all {
			rows[i][e.Step], last[i], there[e.Step] = e.Rows, e.Step, true
		}
	}
	out := []Evaluation{}
	for _, step := range slices.Sorted(maps.Keys(there)) {
		at := slices.Repeat([]int{step}, len(views))
		if e, ok := pairAll(evaluationName(step), at, rows, seed); ok {
			out = append(out, e)
		}
	}
	if !equal(last) {
		for i, step := range last[1:] {
			if step == last[0] {
				last[i+1] = notEvaluated // compared above
			}
		}
		if e, ok := pairAll("last", last, rows, seed); ok {
			out = append(out, e)
		}
	}
	return out, nil
}

func evaluationName(step int) string {
	if step == analysis.NoStep {
		return "warm start"
	}
	return fmt.Sprintf("step %d", step)
}

func equal(values []int) bool {
	return !slices.ContainsFunc(values, func(v int) bool { return v != values[0] })
}

// pairAll compares one evaluation of each run with the base's; ok is false if there is nothing to compare.
func pairAll(name string, at []int, rows []map[int][]schema.EvaluationRow, seed uint64) (e Evaluation, ok bool) {
	e = Evaluation{Name: name, Steps: make([]*int, len(at))}
	for i, step := range at {
		if rows[i][step] != nil {
			e.Steps[i] = new(max(step, 0))
		}
		if i > 0 {
			p := pair(rows[0][at[0]], rows[i][step], seed)
			e.Against, ok = append(e.Against, p), ok || p != nil
		}
	}
	return e, ok
}

// pair compares two evaluations; nil if they have no problems in common.
func pair(before, after []schema.EvaluationRow, seed uint64) *Paired {
	all, ok := evaluation.Differ(before, after, -1, seed)
	if !ok {
		return nil
	}
	out := &Paired{Difference: all, ByLevel: map[string]evaluation.Difference{}}
	for _, r := range before {
		name := strconv.Itoa(int(r.Level))
		if _, done := out.ByLevel[name]; done {
			continue
		}
		if d, ok := evaluation.Differ(before, after, int(r.Level), seed); ok {
			out.ByLevel[name] = d
		}
	}
	out.ByPart = byPart(before, after, seed)
	return out
}

// byPart compares the problems of each part of a mix; nil if the evaluations are of no mix.
func byPart(before, after []schema.EvaluationRow, seed uint64) map[string]evaluation.Difference {
	first, second := ofParts(before), ofParts(after)
	var out map[string]evaluation.Difference
	for name, rows := range first {
		d, ok := evaluation.Differ(rows, second[name], -1, seed)
		if !ok {
			continue
		}
		if out == nil {
			out = map[string]evaluation.Difference{}
		}
		out[name] = d
	}
	return out
}

// ofParts sorts rows by their part of a mix.
func ofParts(rows []schema.EvaluationRow) map[string][]schema.EvaluationRow {
	out := map[string][]schema.EvaluationRow{}
	for _, r := range rows {
		if r.Part != nil {
			out[*r.Part] = append(out[*r.Part], r)
		}
	}
	return out
}
