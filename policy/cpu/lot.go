package cpu

// interval is a run of rows or columns.
type interval struct{ lo, hi int }

// share is the given part's run of n, cut at multiples of unit.
func share(n, part, parts, unit int) interval {
	at := func(p int) int {
		if p == parts {
			return n
		}
		return n * p / parts / unit * unit
	}
	return interval{at(part), at(part + 1)}
}

// lot is one part's work in a decoding step: some of the live rows, and of each matrix's columns a share. Rows are
// shared out where there are many, so that parts need not wait for each other within a step. Where they are few
// and the matrices large, a step takes as long as reading the weights, and columns are shared out, so that each
// weight is read by one part alone.
type lot[T float] struct {
	w           *worker[T]
	rows        interval
	part, parts int // of the columns
}

// lotUnit is a multiple of what the kernels compute at once and of a cache line, which no two parts should write.
const lotUnit = 16

// cols is the lot's share of a matrix's n columns.
func (l lot[T]) cols(n int) interval { return share(n, l.part, l.parts, lotUnit) }

// rows runs f for every part that has live rows, with those and all columns.
func (g *generation[T]) rows(f func(l lot[T]) error) error {
	return g.team.run(func(part int) error {
		l := lot[T]{w: g.r.workers[part], rows: share(len(g.live), part, g.team.parts, 1), parts: 1}
		if l.rows.lo == l.rows.hi {
			return nil
		}
		return f(l)
	})
}

// columns runs f for every part with all live rows and a share of the columns.
func (g *generation[T]) columns(f func(l lot[T])) error {
	return g.team.run(func(part int) error {
		f(lot[T]{w: g.r.workers[part], rows: interval{0, len(g.live)}, part: part, parts: g.team.parts})
		return nil
	})
}

// Limits of sharing out columns: rows a part from which products are bound by arithmetic and no longer by the reading
// of weights, and weights of a layer beyond which they do not stay in a core's own cache.
const (
	columnRows   = 12
	columnFloats = 1 << 17
)

// byColumns decides for one step.
func (g *generation[T]) byColumns() bool {
	d := g.r.model.dims()
	layer := d.H * (2*d.Q + 2*d.K + 3*d.F)
	return g.team.parts > 1 && len(g.live) < columnRows*g.team.parts && layer >= columnFloats
}

// linear writes y = x·Wᵀ (+ y if add) for the lot's rows and columns.
func (l lot[T]) linear(y, x []T, f *factor[T], add bool) {
	lo := l.rows.lo
	l.w.product(y[lo*f.out:], f.out, x[lo*f.in:], l.rows.hi-lo, f, l.cols(f.out), add)
}

// normed writes the lot's rows of rmsNorm(x) to scratch and returns it as if it began at row 0. Parts that share
// columns each do it for themselves: it is quicker than waiting.
func (l lot[T]) normed(x, weight []T) []T {
	h := len(weight)
	xn := sized(&l.w.s.xn, l.rows.hi*h)
	rmsNorm(xn[l.rows.lo*h:], x[l.rows.lo*h:l.rows.hi*h], weight, l.w.m.shape.NormEps)
	return xn
}
