package evaluation

import (
	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/rl/words"
	"github.com/ropewalk/ropewalk/schema"
)

// Words returns the means of exact match and of F1 over the sampled episodes of questions with several golds. An
// episode without an answer counts as 0.
func Words(rows []schema.EvaluationRow) (exact, f1 float64) {
	n := 0.0
	for _, r := range rows {
		if r.Greedy {
			continue
		}
		n++
		if r.FinalAnswer == "" {
			continue
		}
		golds := env.SplitGolds(r.Gold)
		if words.Exact(r.FinalAnswer, golds) {
			exact++
		}
		f1 += words.F1(r.FinalAnswer, golds)
	}
	if n == 0 {
		return 0, 0
	}
	return exact / n, f1 / n
}
