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

// tally sums a figure over the sampled episodes of one problem.
type tally struct {
	first  *schema.EvaluationRow // of the problem
	sum, n float64
}

// byProblem sums a figure over the sampled episodes of each problem, in the order in which the rows name the problems.
// Episodes without the figure are left out.
func byProblem(rows []schema.EvaluationRow, figure func(schema.EvaluationRow) (x float64, ok bool)) (out []*tally) {
	of := map[string]*tally{}
	for i, r := range rows {
		if r.Greedy {
			continue
		}
		x, ok := figure(r)
		if !ok {
			continue
		}
		if of[r.ProblemID] == nil {
			of[r.ProblemID] = &tally{first: &rows[i]}
			out = append(out, of[r.ProblemID])
		}
		of[r.ProblemID].sum += x
		of[r.ProblemID].n++
	}
	return out
}

func solved(r schema.EvaluationRow) (float64, bool) { return number(r.Success), true }

// number is 1 for what is true.
func number(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// Summarise computes rates over problems: each problem counts with the mean of its samples. The intervals depend on the
// order of the problems, so rows must be in the order of Sampled.
func Summarise(rows []schema.EvaluationRow, runSeed uint64) (out api.EvaluationSummary) {
	var greedy tally
	var calls, errors float64
	for _, r := range rows {
		out.Trajectories++
		out.ToolCalls += int(r.ToolCalls)
		if r.ResponseTokens != nil {
			out.Tokens += int64(*r.ResponseTokens)
		}
		switch {
		case r.Greedy:
			greedy.sum += number(r.Success)
			greedy.n++
		case r.Success:
			calls += float64(r.ToolCalls)
			errors += float64(r.ToolErrors)
		}
	}
	// The slices are in the rows' order, so that no sum depends on a map's order.
	all, levels, types, parts := byProblem(rows, solved), map[string][]*tally{}, map[string][]*tally{},
		map[string][]*tally{}
	for _, t := range all {
		level := strconv.Itoa(int(t.first.Level))
		levels[level] = append(levels[level], t)
		if name := t.first.TaskType; name != nil {
			types[*name] = append(types[*name], t)
		}
		if part := t.first.Part; part != nil {
			parts[*part] = append(parts[*part], t)
		}
	}
	out.Rate = Rate(meansOf(all), runSeed, "all")
	out.ByLevel = map[string]api.Rate{}
	for level, tallies := range levels {
		out.ByLevel[level] = Rate(meansOf(tallies), runSeed, level)
	}
	out.ByType = rates(types, func(name string, means []float64) api.Rate {
		return Rate(means, runSeed, "type/"+name)
	})
	out.ByPart = rates(parts, func(part string, means []float64) api.Rate {
		return Rate(means, runSeed, "part "+part)
	})
	if greedy.n > 0 {
		out.Greedy, out.GreedyN = greedy.sum/greedy.n, int(greedy.n)
	}
	if calls > 0 {
		out.ToolErrorRatePositives, out.PositiveCalls = errors/calls, int(calls)
	}
	return out
}

// rates gives each group its rate; nil if there are no groups.
func rates(groups map[string][]*tally, of func(name string, means []float64) api.Rate) map[string]api.Rate {
	if len(groups) == 0 {
		return nil
	}
	out := map[string]api.Rate{}
	for name, tallies := range groups {
		out[name] = of(name, meansOf(tallies))
	}
	return out
}

func meansOf(tallies []*tally) []float64 {
	out := make([]float64, len(tallies))
	for i, t := range tallies {
		out[i] = t.sum / t.n
	}
	return out
}

// Success returns only the success rate of Summarise, without the bootstrap; 0 without sampled rows.
func Success(rows []schema.EvaluationRow) float64 {
	means, sum := meansOf(byProblem(rows, solved)), 0.0
	for _, m := range means {
		sum += m
	}
	return sum / float64(max(1, len(means)))
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
		return cmp.Or(cmp.Compare(number(a.Greedy), number(b.Greedy)), place[a.ProblemID]-place[b.ProblemID],
			cmp.Compare(a.Sample, b.Sample))
	})
	return rows
}
