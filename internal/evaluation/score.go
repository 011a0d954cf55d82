package evaluation

import (
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/schema"
)

// Score returns the mean score of the sampled episodes; ok is false if none has a score.
func Score(rows []schema.EvaluationRow) (mean float64, ok bool) {
	n := 0
	for _, r := range rows {
		if !r.Greedy && r.Score != nil {
			mean += *r.Score
			n++
		}
	}
	if n == 0 {
		return 0, false
	}
	return mean / float64(n), true
}

// ScoreRate is the mean score with its 95% interval. Each problem counts with the mean of its samples. ok is false if
// rows have no score, because their environment grades no episodes.
func ScoreRate(rows []schema.EvaluationRow, runSeed uint64) (rate api.Rate, ok bool) {
	if _, ok := Score(rows); !ok {
		return api.Rate{}, false
	}
	scores := byProblem(rows, func(r schema.EvaluationRow) (float64, bool) {
		if r.Score == nil {
			return 0, true
		}
		return *r.Score, true
	})
	return Rate(meansOf(scores), runSeed, "score"), true
}
