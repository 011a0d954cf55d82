package tokenizer

import "container/heap"

// candidate is a merge that fits at a place of a word, if the tokens there have not changed since.
type candidate struct {
	merge
	at   int32
	pair pair
}

// before puts the earliest merge first, then the leftmost.
//
//lint:ignore U1000 queue calls it
func (c candidate) before(d candidate) bool {
	return c.rank < d.rank || c.rank == d.rank && c.at < d.at
}

// queue is a heap.
type queue[T interface{ before(T) bool }] []T

func (q queue[T]) Len() int           { return len(q) }
func (q queue[T]) Less(i, j int) bool { return q[i].before(q[j]) }
func (q queue[T]) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *queue[T]) Push(x any)        { *q = append(*q, x.(T)) }
func (q *queue[T]) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}

// splitLong is split for words of any length: it takes n·log n steps, where a search for each merge would take n².
func (m *merges) splitLong(text string) []int32 {
	ids := m.bytes(text)
	n := len(ids)
	next, before := make([]int32, n), make([]int32, n)
	for i := range n {
		next[i], before[i] = int32(i+1), int32(i-1)
	}
	var fitting queue[candidate]
	add := func(at int32) {
		if at < 0 || int(next[at]) >= n {
			return
		}
		p := pair{ids[at], ids[next[at]]}
		if r, ok := m.rank[p]; ok {
			heap.Push(&fitting, candidate{r, at, p})
		}
	}
	for i := range n {
		add(int32(i))
	}
	for fitting.Len() > 0 {
		c := heap.Pop(&fitting).(candidate)
		if ids[c.at] != c.pair.left || int(next[c.at]) >= n || ids[next[c.at]] != c.pair.right {
			continue
		}
		gone := next[c.at]
		ids[c.at], ids[gone], next[c.at] = c.id, -1, next[gone]
		if int(next[c.at]) < n {
			before[next[c.at]] = c.at
		}
		add(c.at)
		add(before[c.at])
	}
	out := make([]int32, 0, n/2)
	for i := 0; i < n; i = int(next[i]) {
		out = append(out, ids[i])
	}
	return out
}
