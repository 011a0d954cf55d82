package evaluation

import (
	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/rl/words"
	"github.com/ropewalk/ropewalk/schema"
)

// Match compares an episode's answer with the golds of its question by their words. An episode without an answer
// matches nothing.
func Match(r schema.EvaluationRow) (exact bool, f1 float64) {
	if r.FinalAnswer == "" {
		return false, 0
	}
	golds := env.SplitGolds(r.Gold)
	return words.Exact(r.FinalAnswer, golds), words.F1(r.FinalAnswer, golds)
}

// Words returns the means of exact match and of F1 over the sampled episodes of questions with several golds.
func Words(rows []schema.EvaluationRow) (exact, f1 float64) {
	n := 0.0
	for _, r := range rows {
		if r.Greedy {
			continue
		}
		n++
		equal, close := Match(r)
		exact, f1 = exact+number(equal), f1+close
	}
	if n == 0 {
		return 0, 0
	}
	return exact / n, f1 / n
}

// WordRates are the means of exact match and F1 with their 95% intervals. Each problem counts with the mean of its
// samples.
func WordRates(rows []schema.EvaluationRow, runSeed uint64) (exact, f1 api.Rate) {
	equal := byProblem(rows, func(r schema.EvaluationRow) (float64, bool) {
		same, _ := Match(r)
		return number(same), true
	})
	close := byProblem(rows, func(r schema.EvaluationRow) (float64, bool) {
		_, share := Match(r)
		return share, true
	})
	return Rate(meansOf(equal), runSeed, "exact_match"), Rate(meansOf(close), runSeed, "f1")
}
