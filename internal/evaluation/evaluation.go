// Package evaluation computes the figures of an evaluation from its rows: success rates with intervals, by level, by
// type of task and overall, the greedy rate, scores and counts. The activity that evaluates, the readers of the record
// and verify all use it, so that a figure in a manifest can be checked against the rows that the manifest names by
// digest.
//
//	rows of one evaluation → Sampled (their order when they were drawn) → Summarise → api.EvaluationSummary
package evaluation

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/ropewalk/ropewalk/env/calc"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/schema"
)

// tally counts the samples of one problem.
type tally struct{ success, n float64 }

func (t *tally) add(success bool) {
	if success {
		t.success++
	}
	t.n++
}

// Summarise computes rates over problems: each problem counts with the mean of its samples. The intervals depend on the
// order of the problems, so rows must be in the order of Sampled.
func Summarise(rows []schema.EvaluationRow, runSeed uint64) (out api.EvaluationSummary) {
	problems := map[string]*tally{}
	// By level, and all under "". The slices are in the rows' order, so that no sum depends on a map's order.
	units, types, parts := map[string][]*tally{}, map[string][]*tally{}, map[string][]*tally{}
	var greedy tally
	var calls, errors float64
	for _, r := range rows {
		out.Trajectories++
		out.ToolCalls += int(r.ToolCalls)
		if r.ResponseTokens != nil {
			out.Tokens += int64(*r.ResponseTokens)
		}
		if r.Greedy {
			greedy.add(r.Success)
			continue
		}
		if r.Success {
			calls += float64(r.ToolCalls)
			errors += float64(r.ToolErrors)
		}
		p := problems[r.ProblemID]
		if p == nil {
			p = &tally{}
			level := strconv.Itoa(int(r.Level))
			problems[r.ProblemID] = p
			units[""], units[level] = append(units[""], p), append(units[level], p)
			if r.TaskType != nil {
				types[*r.TaskType] = append(types[*r.TaskType], p)
			}
			if r.Part != nil {
				parts[*r.Part] = append(parts[*r.Part], p)
			}
		}
		p.add(r.Success)
	}
	out.ByLevel = map[string]api.Rate{}
	for level, tallies := range units {
		if level == "" {
			out.Rate = Rate(meansOf(tallies), runSeed, "all")
		} else {
			out.ByLevel[level] = Rate(meansOf(tallies), runSeed, level)
		}
	}
	for name, tallies := range types {
		if out.ByType == nil {
			out.ByType = map[string]api.Rate{}
		}
		out.ByType[name] = Rate(meansOf(tallies), runSeed, "type/"+name)
	}
	for part, tallies := range parts {
		if out.ByPart == nil {
			out.ByPart = map[string]api.Rate{}
		}
		out.ByPart[part] = Rate(meansOf(tallies), runSeed, "part "+part)
	}
	if greedy.n > 0 {
		out.Greedy, out.GreedyN = greedy.success/greedy.n, int(greedy.n)
	}
	if calls > 0 {
		out.ToolErrorRatePositives, out.PositiveCalls = errors/calls, int(calls)
	}
	return out
}

func meansOf(tallies []*tally) []float64 {
	out := make([]float64, len(tallies))
	for i, t := range tallies {
		out[i] = t.success / t.n
	}
	return out
}

// Success returns only the success rate of Summarise, without the bootstrap; 0 without sampled rows.
func Success(rows []schema.EvaluationRow) float64 {
	problems := map[string]*tally{}
	var units []*tally
	for _, r := range rows {
		if r.Greedy {
			continue
		}
		if problems[r.ProblemID] == nil {
			problems[r.ProblemID] = &tally{}
			units = append(units, problems[r.ProblemID])
		}
		problems[r.ProblemID].add(r.Success)
	}
	if len(units) == 0 {
		return 0
	}
	mean := 0.0
	for _, u := range units {
		mean += u.success / u.n
	}
	return mean / float64(len(units))
}

// Sampled takes the rows of a shard in canonical order and returns them in the order in which Evaluate draws: sampled
// episodes before greedy ones, problems in the order of the held-out set, samples by number. If there are other
// problems, the rows stay in canonical order.
func Sampled(rows []schema.EvaluationRow) []schema.EvaluationRow {
	ids := map[string]bool{}
	for _, r := range rows {
		ids[r.ProblemID] = true
	}
	heldout, err := calc.Heldout(len(ids))
	if err != nil {
		return rows // the held-out set never has this many problems
	}
	place := make(map[string]int, len(heldout))
	for i, p := range heldout {
		if !ids[p.ID] {
			return rows
		}
		place[p.ID] = i
	}
	rows = slices.Clone(rows)
	slices.SortStableFunc(rows, func(a, b schema.EvaluationRow) int {
		return cmp.Or(order(a.Greedy)-order(b.Greedy), place[a.ProblemID]-place[b.ProblemID],
			cmp.Compare(a.Sample, b.Sample))
	})
	return rows
}

func order(greedy bool) int {
	if greedy {
		return 1
	}
	return 0
}
