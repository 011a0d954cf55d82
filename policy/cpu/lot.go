package cpu

// interval is a run of rows or columns.
type interval struct{ lo, hi int }

// rangeOfPart is the given part's run of n, cut at multiples of unit.
func rangeOfPart(n, part, parts, unit int) interval {
	at := func(p int) int {
		if p == parts {
			return n
		}
		return n * p / parts / unit * unit
	}
	return interval{at(part), at(part + 1)}
}

// lot is one part's work in a decoding step: some of the live rows, and a share of each matrix's columns. If there are
// many rows, the parts divide the rows, so that they need not wait for each other within a step. If there are few rows
// and large matrices, a step takes as long as reading the weights; the parts then divide the columns, so that only one
// part reads each weight.
type lot[T float] struct {
	w     *worker[T]
	rows  interval
	share interval // of the columns, in units
	units int
}

// lotUnit is a multiple of the kernels' width and of a cache line, so that no two parts write to the same line.
const lotUnit = 16

// lotRows is the number of rows that the own kernels multiply at once.
const lotRows = 6

// cols is the lot's share of a matrix's n columns.
func (l lot[T]) cols(n int) interval {
	return interval{rangeOfPart(n, l.share.lo, l.units, lotUnit).lo, rangeOfPart(n, l.share.hi, l.units, lotUnit).lo}
}

// rows runs f for lots of live rows, with all columns. Where a row's numbers do not depend on the other rows of its
// lot, each part first takes half of its share and then small lots that are left, so that the other parts do more when
// one is delayed.
func (g *decoding[T]) rows(f func(l lot[T]) error) error {
	parts, n := g.team.parts, len(g.live)
	units, atOnce, unit := parts, 1, 1
	if small := n / (2 * lotRows); g.r.own() && small >= 4*parts {
		units, atOnce, unit = small, small/(2*parts), lotRows
	}
	g.taken.Store(0)
	return g.team.run(func(part int) error {
		l := lot[T]{w: g.r.workers[part], share: interval{0, 1}, units: 1}
		for u := (interval{part * atOnce, (part + 1) * atOnce}); u.hi <= units; {
			l.rows = interval{rangeOfPart(n, u.lo, units, unit).lo, rangeOfPart(n, u.hi, units, unit).lo}
			if l.rows.lo < l.rows.hi {
				if err := f(l); err != nil {
					return err
				}
			}
			next := parts*atOnce + g.nextItem()
			u = interval{next, next + 1}
		}
		return nil
	})
}

// Columns are counted in units. Each part first takes a run of units and then single units that are left, so that the
// other parts do more when one is delayed.
const (
	unitsPerPart = 8
	unitsAtOnce  = 6
)

// columns runs f on all live rows for lots of columns. Before its first lot each part runs ready, unless that is nil.
func (g *decoding[T]) columns(ready, f func(l lot[T])) error {
	parts := g.team.parts
	g.taken.Store(0)
	return g.team.run(func(part int) error {
		l := lot[T]{w: g.r.workers[part], rows: interval{0, len(g.live)}, units: parts * unitsPerPart}
		if ready != nil {
			ready(l)
		}
		l.share = interval{part * unitsAtOnce, (part + 1) * unitsAtOnce}
		for l.share.hi <= l.units {
			f(l)
			next := parts*unitsAtOnce + g.nextItem()
			l.share = interval{next, next + 1}
		}
		return nil
	})
}

// heads runs f for every key head of every live row. A part that has finished one takes the next one.
func (g *decoding[T]) heads(f func(w *worker[T], row, head int)) error {
	heads := g.keyHeads()
	g.taken.Store(0)
	return g.team.run(func(part int) error {
		for i := g.nextItem(); i < len(g.live)*heads; i = g.nextItem() {
			f(g.r.workers[part], i/heads, i%heads)
		}
		return nil
	})
}

// nextItem returns the next item of the current phase that no part has taken.
func (g *decoding[T]) nextItem() int { return int(g.taken.Add(1) - 1) }

// The limits of dividing columns: the number of rows per part from which arithmetic takes longer than reading the
// weights, and the size of a layer's weights from which a core's own cache cannot hold them.
const (
	columnRows   = 12
	columnFloats = 1 << 17
)

// byColumns reports whether the parts of this step divide the columns.
func (g *decoding[T]) byColumns() bool {
	d := g.r.model.dims()
	layer := d.H * (2*d.Q + 2*d.K + 3*d.F)
	return g.team.parts > 1 && len(g.live) < columnRows*g.team.parts && layer >= columnFloats
}

// linear writes y = x·Wᵀ (+ y if add) for the lot's rows and columns.
func (l lot[T]) linear(y, x []T, f *factor[T], add bool) {
	lo := l.rows.lo
	l.w.product(y[lo*f.out:], f.out, x[lo*f.in:], l.rows.hi-lo, f, l.cols(f.out), add)
}

// norm writes the lot's rows of rmsNorm(x) to the part's scratch xn, which begins at row 0. Parts that divide columns
// each compute it, which is quicker than waiting for another part.
func (l lot[T]) norm(x, weight []T) {
	h := len(weight)
	xn := sized(&l.w.s.xn, l.rows.hi*h)
	rmsNorm(xn[l.rows.lo*h:], x[l.rows.lo*h:l.rows.hi*h], weight, l.w.m.shape.NormEps)
}
