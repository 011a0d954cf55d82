package cpu

import (
	"cmp"
	"slices"

	"github.com/ropewalk/ropewalk/policy"
)

// truncate returns the ids that t leaves of one row, in ascending order. z holds the tempered logits and e their
// exponentials, of which the greatest is 1. The ids are written to scratch if it is large enough.
func truncate[T float](t policy.Truncation, z, e []T, scratch []int32) []int32 {
	ids, least := scratch[:0], T(0)
	nucleus := t.TopP > 0 && t.TopP < 1
	var all float64
	for _, v := range e {
		all += float64(v)
	}
	if nucleus && t.TopK == 0 {
		// V tokens of less than (1 − p)/V each have less than 1 − p together, so the nucleus ends before them. Only the
		// others need to be sorted. The last factor is for rounding.
		least = T((1 - t.TopP) * all / float64(len(e)) * (1 - 1e-6))
	}
	for i, v := range e {
		if v > 0 && v >= least {
			ids = append(ids, int32(i))
		}
	}
	order := func(a, b int32) int { return cmp.Or(cmp.Compare(z[b], z[a]), cmp.Compare(a, b)) }
	if t.TopK > 0 && t.TopK < len(ids) {
		ids = first(ids, t.TopK, order)
	}
	if nucleus {
		slices.SortFunc(ids, order)
		if t.TopK > 0 {
			all = sumOf(e, ids)
		}
		var sum float64
		for n, id := range ids {
			if sum += float64(e[id]); sum >= t.TopP*all {
				ids = ids[:n+1]
				break
			}
		}
	}
	if t.MinP > 0 {
		ids = slices.DeleteFunc(ids, func(id int32) bool { return float64(e[id]) < t.MinP })
	}
	slices.Sort(ids)
	return ids
}

// first returns the k first ids in the given order, themselves unordered. ids is overwritten.
func first(ids []int32, k int, order func(a, b int32) int) []int32 {
	heap := ids[:k] // the last of the k is at its top
	sink := func(i int) {
		for {
			child := 2*i + 1
			if child >= k {
				return
			}
			if child+1 < k && order(heap[child], heap[child+1]) < 0 {
				child++
			}
			if order(heap[i], heap[child]) >= 0 {
				return
			}
			heap[i], heap[child] = heap[child], heap[i]
			i = child
		}
	}
	for i := k/2 - 1; i >= 0; i-- {
		sink(i)
	}
	for _, id := range ids[k:] {
		if order(id, heap[0]) < 0 {
			heap[0] = id
			sink(0)
		}
	}
	return heap
}

// sumOf adds up the numbers of the given ids.
func sumOf[T float](e []T, ids []int32) float64 {
	var sum float64
	for _, id := range ids {
		sum += float64(e[id])
	}
	return sum
}
