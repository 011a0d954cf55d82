package simulate

import "container/heap"

// queue is a heap whose less decides.
type queue[T any] struct {
	items []T
	less  func(a, b *T) bool
}

func (q *queue[T]) push(x T) { heap.Push(q, x) }
func (q *queue[T]) pop() T   { return heap.Pop(q).(T) }

// Len, Less, Swap, Push and Pop implement heap.Interface.
func (q *queue[T]) Len() int           { return len(q.items) }
func (q *queue[T]) Less(i, j int) bool { return q.less(&q.items[i], &q.items[j]) }
func (q *queue[T]) Swap(i, j int)      { q.items[i], q.items[j] = q.items[j], q.items[i] }
func (q *queue[T]) Push(x any)         { q.items = append(q.items, x.(T)) }

// Pop takes the last item out.
func (q *queue[T]) Pop() any {
	last := q.items[len(q.items)-1]
	q.items = q.items[:len(q.items)-1]
	return last
}
