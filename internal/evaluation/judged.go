package evaluation

import (
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/schema"
)

// JudgedRate is the share of sampled episodes whose answer a judge found to mean the same as the correct one, with its
// 95% interval. Each problem counts with the mean of its episodes that have a verdict; problems without any are left
// out. ok is false if no episode has one.
func JudgedRate(rows []schema.EvaluationRow, runSeed uint64) (rate api.Rate, ok bool) {
	tallies := map[string]*tally{}
	var order []string
	for _, r := range rows {
		if r.Greedy || r.Judged == nil {
			continue
		}
		if tallies[r.ProblemID] == nil {
			tallies[r.ProblemID] = &tally{}
			order = append(order, r.ProblemID)
		}
		tallies[r.ProblemID].n++
		if *r.Judged {
			tallies[r.ProblemID].success++
		}
	}
	means := make([]float64, len(order))
	for i, id := range order {
		means[i] = tallies[id].success / tallies[id].n
	}
	if len(means) == 0 {
		return api.Rate{}, false
	}
	return Rate(means, runSeed, schema.StatJudged), true
}
