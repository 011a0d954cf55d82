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

// alarms holds one moment for each engine, and knows the earliest.
type alarms struct {
	at    []float64
	order []int // a heap of engines
	where []int // of each engine in order
}

func newAlarms(n int, never float64) *alarms {
	a := &alarms{at: make([]float64, n), order: make([]int, n), where: make([]int, n)}
	for i := range n {
		a.at[i], a.order[i], a.where[i] = never, i, i
	}
	return a
}

func (a *alarms) first() (engine int, at float64) { return a.order[0], a.at[a.order[0]] }

func (a *alarms) before(i, j int) bool {
	x, y := a.order[i], a.order[j]
	return a.at[x] < a.at[y] || a.at[x] == a.at[y] && x < y
}

func (a *alarms) swap(i, j int) {
	a.order[i], a.order[j] = a.order[j], a.order[i]
	a.where[a.order[i]], a.where[a.order[j]] = i, j
}

// set changes an engine's moment.
func (a *alarms) set(engine int, at float64) {
	a.at[engine] = at
	i := a.where[engine]
	for i > 0 && a.before(i, (i-1)/2) {
		a.swap(i, (i-1)/2)
		i = (i - 1) / 2
	}
	for {
		least := i
		for down := 2*i + 1; down <= 2*i+2 && down < len(a.order); down++ {
			if a.before(down, least) {
				least = down
			}
		}
		if least == i {
			return
		}
		a.swap(i, least)
		i = least
	}
}
