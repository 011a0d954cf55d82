package evaluation

import (
	"fmt"

	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/rl/diagnose"
	"github.com/ropewalk/ropewalk/schema"
)

// Passes are the figures of an evaluation with several samples of each problem, each a mean over problems with its
// 95% interval. A problem with c solved of n samples counts with
//
//	pass@k = 1 − C(n−c, k)/C(n, k)    that at least one of k samples solves it (Chen et al. 2021)
//	pass^k = C(c, k)/C(n, k)          that all of k samples solve it (Yao et al. 2024)
//
// Both are unbiased. k goes from 1 to the least number of samples of any problem, in powers of two and with the last
// one. mean@k, the mean success of the samples, is Summarise's rate.
type Passes struct {
	K      []int      `json:"k"`
	PassAt []api.Rate `json:"pass_at_k"`  // by the index of K
	PassOf []api.Rate `json:"pass_hat_k"` // by the index of K
}

// PassesOf computes the figures from the sampled rows of one evaluation.
func PassesOf(rows []schema.EvaluationRow, runSeed uint64) (out Passes, err error) {
	problems := byProblem(Sampled(rows), solved)
	least := 0
	for _, p := range problems {
		if n := int(p.n); least == 0 || n < least {
			least = n
		}
	}
	for k := 1; k <= least; k = following(k, least) {
		at, all := make([]float64, len(problems)), make([]float64, len(problems))
		for i, p := range problems {
			n, c := int(p.n), int(p.sum)
			if at[i], err = diagnose.PassAtK(n, c, k); err != nil {
				return Passes{}, err
			}
			missed, err := diagnose.PassAtK(n, n-c, k) // that at least one of k fails
			if err != nil {
				return Passes{}, err
			}
			all[i] = 1 - missed
		}
		out.K = append(out.K, k)
		out.PassAt = append(out.PassAt, Rate(at, runSeed, fmt.Sprintf("pass@%d", k)))
		out.PassOf = append(out.PassOf, Rate(all, runSeed, fmt.Sprintf("pass^%d", k)))
	}
	return out, nil
}

// following is the k after k: the next power of two, but never beyond the last one.
func following(k, last int) int {
	if k < last && 2*k > last {
		return last
	}
	return 2 * k
}
