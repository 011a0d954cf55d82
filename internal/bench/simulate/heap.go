package simulate

// heap is a binary heap without interfaces: its less decides.
type heap[T any] struct {
	items []T
	less  func(a, b *T) bool
}

func (h *heap[T]) push(x T) {
	h.items = append(h.items, x)
	a := h.items
	for i := len(a) - 1; i > 0; {
		up := (i - 1) / 2
		if !h.less(&a[i], &a[up]) {
			return
		}
		a[i], a[up] = a[up], a[i]
		i = up
	}
}

func (h *heap[T]) pop() T {
	a := h.items
	top := a[0]
	a[0] = a[len(a)-1]
	a = a[:len(a)-1]
	h.items = a
	for i := 0; ; {
		least := i
		for down := 2*i + 1; down <= 2*i+2 && down < len(a); down++ {
			if h.less(&a[down], &a[least]) {
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
