package scheduler

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

func (t timer) before(u timer) bool {
	if t.at != u.at {
		return t.at < u.at
	}
	return t.of.episode < u.of.episode
}

// timers is a heap, the earliest first.
type timers []timer

func (h *timers) push(t timer) {
	*h = append(*h, t)
	a := *h
	for i := len(a) - 1; i > 0; {
		up := (i - 1) / 2
		if !a[i].before(a[up]) {
			break
		}
		a[i], a[up] = a[up], a[i]
		i = up
	}
}

func (h *timers) pop() timer {
	a := *h
	top := a[0]
	a[0] = a[len(a)-1]
	a = a[:len(a)-1]
	*h = a
	for i := 0; ; {
		least := i
		for _, down := range [2]int{2*i + 1, 2*i + 2} {
			if down < len(a) && a[down].before(a[least]) {
				least = down
			}
		}
		if least == i {
			return top
		}
		a[i], a[least] = a[least], a[i]
		i = least
	}
}
