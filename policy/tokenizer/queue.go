package tokenizer

import "container/heap"

// candidate is a merge that fits at a place of a word, if the tokens there have not changed since.
type candidate struct {
	merge
	at   int32
	pair pair
}

// candidates is a heap: the earliest merge first, then the leftmost.
type candidates []candidate

func (c candidates) Len() int { return len(c) }
func (c candidates) Less(i, j int) bool {
	return c[i].rank < c[j].rank || c[i].rank == c[j].rank && c[i].at < c[j].at
}
func (c candidates) Swap(i, j int) { c[i], c[j] = c[j], c[i] }
func (c *candidates) Push(x any)   { *c = append(*c, x.(candidate)) }
func (c *candidates) Pop() any {
	last := (*c)[len(*c)-1]
	*c = (*c)[:len(*c)-1]
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
	var queue candidates
	add := func(at int32) {
		if at < 0 || int(next[at]) >= n {
			return
		}
		p := pair{ids[at], ids[next[at]]}
		if r, ok := m.rank[p]; ok {
			heap.Push(&queue, candidate{r, at, p})
		}
	}
	for i := range n {
		add(int32(i))
	}
	for queue.Len() > 0 {
		c := heap.Pop(&queue).(candidate)
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
