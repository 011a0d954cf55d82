package scheduler

import "cmp"

// ticket is a place in a queue. It is void once its episode has left the queue in another way.
type ticket struct{ episode, number int }

// fifo is a queue, first in first out.
type fifo struct {
	items []ticket
	head  int
}

func (q *fifo) push(t ticket) { q.items = append(q.items, t) }

func (q *fifo) pop() {
	if q.head++; q.head > 64 && q.head*2 > len(q.items) {
		q.items = q.items[:copy(q.items, q.items[q.head:])]
		q.head = 0
	}
}

// first returns the first ticket that is not void, and forgets the void ones before it.
func (c *Core) first(q *fifo) (*episode, bool) {
	for q.head < len(q.items) {
		t := q.items[q.head]
		if e := c.episodes[t.episode]; e != nil && e.number == t.number {
			return e, true
		}
		q.pop()
	}
	return nil, false
}

// timer is a moment at which an episode is looked at. It is void once the episode has another number.
type timer struct {
	at float64
	of ticket
}

// timers is a heap, the earliest first.
type timers []timer

func (h timers) Len() int { return len(h) }
func (h timers) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(h[i].at, h[j].at), cmp.Compare(h[i].of.episode, h[j].of.episode)) < 0
}
func (h timers) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *timers) Push(t any)   { *h = append(*h, t.(timer)) }
func (h *timers) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}
