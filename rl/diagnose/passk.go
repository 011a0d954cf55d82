package diagnose

// pass@k, the chance that at least one of k samples solves a task, from c of n samples that did:
//
//	pass@k = 1 − C(n−c, k)/C(n, k)
//
// (Chen et al. 2021, the unbiased estimate); avg@n is the mean score of n samples. Both are means
// over tasks. Departures: computed as −expm1(Σ ln(1 − max(c,k)/(n−i))) over i < min(c,k), which
// equals the fraction since it is symmetric in c and k, overflows for no n and keeps its relative
// precision where the chance is tiny.

import (
	"fmt"
	"math"
)

// PassAtK returns the estimate for one task with c of n samples solved, 1 ≤ k ≤ n.
func PassAtK(n, c, k int) (float64, error) {
	switch {
	case n < 1 || c < 0 || c > n:
		return 0, fmt.Errorf("%w: pass@k of %d solved of %d samples", ErrBadInput, c, n)
	case k < 1 || k > n:
		return 0, fmt.Errorf("%w: pass@%d of %d samples", ErrBadInput, k, n)
	case n-c < k:
		return 1, nil
	}
	logs, most := 0.0, float64(max(c, k))
	for i := range min(c, k) {
		logs += math.Log1p(-most / float64(n-i))
	}
	return max(0, -math.Expm1(logs)), nil // not −0 where nothing was solved
}
