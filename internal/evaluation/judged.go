package evaluation

import (
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/schema"
)

// JudgedRate is the share of sampled episodes whose answer a judge found to mean the same as the correct one, with its
// 95% interval. Each problem counts with the mean of its episodes that have a verdict; problems without any are left
// out. ok is false if no episode has one.
func JudgedRate(rows []schema.EvaluationRow, runSeed uint64) (rate api.Rate, ok bool) {
	judged := byProblem(rows, func(r schema.EvaluationRow) (float64, bool) {
		return number(r.Judged != nil && *r.Judged), r.Judged != nil
	})
	return Rate(meansOf(judged), runSeed, schema.StatJudged), len(judged) > 0
}
