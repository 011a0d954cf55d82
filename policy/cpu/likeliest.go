package cpu

import (
	"cmp"
	"slices"

	"github.com/ropewalk/ropewalk/policy"
)

// mostTop is the greatest number of likeliest tokens that a request can ask for.
const mostTop = 20

// likeliest returns the n likeliest tokens of a row with their log-probabilities, the likeliest first and the smaller
// id first where they are equal. z holds the tempered logits; left holds the ids that a truncation left, or is nil.
func likeliest[T float](n int, z []T, left []int32, logSum float64) []policy.TokenLogProb {
	order := func(a, b int32) int { return cmp.Or(cmp.Compare(z[b], z[a]), cmp.Compare(a, b)) }
	var ids []int32
	if left != nil {
		ids = slices.Clone(left)
	} else {
		ids = make([]int32, len(z))
		for i := range ids {
			ids[i] = int32(i)
		}
	}
	if n < len(ids) {
		ids = first(ids, n, order)
	}
	slices.SortFunc(ids, order)
	out := make([]policy.TokenLogProb, len(ids))
	for i, id := range ids {
		out[i] = policy.TokenLogProb{Token: id, LogProb: float32(float64(z[id]) - logSum)}
	}
	return out
}

// keepLikeliest keeps the log-probabilities of the last position's likeliest tokens, if the row keeps any.
func (r *liveRow) keepLikeliest() {
	if r.keep == 0 {
		return
	}
	logProbs := make([]float32, len(r.likeliest))
	for i, l := range r.likeliest {
		logProbs[i] = l.LogProb
	}
	r.tops = append(r.tops, logProbs)
}
