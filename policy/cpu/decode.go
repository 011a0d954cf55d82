package cpu

// states are the intermediate results of one decoding step, [live rows][width], shared by all parts.
type states[T float] struct {
	x   []T // H, the residual stream; after a step the last layer's output
	qkv []T // Q+2K
	att []T // Q
	gu  []T // 2F
	h   []T // F

	logits []T // V, made only where columns are shared out
}

func (s *states[T]) reset(n int, d dims) {
	for buf, width := range map[*[]T]int{&s.x: d.H, &s.qkv: d.Q + 2*d.K, &s.att: d.Q, &s.gu: 2 * d.F, &s.h: d.F} {
		sized(buf, n*width)
	}
}

// step runs the last token of every live row through all layers.
func (g *decoding[T]) step() error {
	layers := g.r.model.shape.Layers
	if !g.byColumns() {
		return g.rows(func(l lot[T]) error {
			g.embed(l)
			for i := range layers {
				g.normIn(l, i)
				g.project(l, i)
				g.attend(l, i)
				g.mix(l, i)
				g.normMid(l, i)
				g.feed(l, i)
				g.narrow(l, i)
			}
			return nil
		})
	}
	err := g.rows(func(l lot[T]) error {
		g.embed(l)
		return nil
	})
	for i := 0; i < layers && err == nil; i++ {
		err = g.layer(i)
	}
	return err
}

// layer runs one layer by columns.
func (g *decoding[T]) layer(i int) error {
	phase := func(ready, f func(lot[T], int)) error {
		if ready == nil {
			return g.columns(nil, func(l lot[T]) { f(l, i) })
		}
		return g.columns(func(l lot[T]) { ready(l, i) }, func(l lot[T]) { f(l, i) })
	}
	if err := phase(g.normIn, g.project); err != nil {
		return err
	}
	if err := g.singly(func(l lot[T]) { g.attend(l, i) }); err != nil {
		return err
	}
	if err := phase(nil, g.mix); err != nil {
		return err
	}
	if err := phase(g.normMid, g.feed); err != nil {
		return err
	}
	return phase(nil, g.narrow)
}

// embed writes the last tokens' embeddings to x.
func (g *decoding[T]) embed(l lot[T]) {
	h := l.w.m.shape.Hidden
	for i := l.rows.lo; i < l.rows.hi; i++ {
		t := g.live[i].tokens
		copy(g.s.x[i*h:(i+1)*h], l.w.m.w.embed[int(t[len(t)-1])*h:])
	}
}

// normIn computes the input of project, and normMid the input of feed.
func (g *decoding[T]) normIn(l lot[T], layer int) { l.norm(g.s.x, l.w.m.w.layers[layer].norm1) }

func (g *decoding[T]) normMid(l lot[T], layer int) { l.norm(g.s.x, l.w.m.w.layers[layer].norm2) }

// project fills qkv from the normed x.
func (g *decoding[T]) project(l lot[T], layer int) {
	l.linear(g.s.qkv, l.w.s.xn, l.w.m.f.layers[layer].qkv, false)
	bias := l.w.m.w.layers[layer].bias
	if bias == nil {
		return
	}
	width, cols := len(bias), l.cols(len(bias))
	for i := l.rows.lo; i < l.rows.hi; i++ {
		addTo(g.s.qkv[i*width+cols.lo:i*width+cols.hi], bias[cols.lo:cols.hi])
	}
}

// attend adds the rows' keys and values to the cache and fills att. Parts divide the rows, not the columns.
func (g *decoding[T]) attend(l lot[T], layer int) {
	d, w, c := l.w.m.dims(), l.w, &g.caches[layer]
	width := d.Q + 2*d.K
	q, k := sized(&w.s.q, d.Q), sized(&w.s.k, d.K)
	for i := l.rows.lo; i < l.rows.hi; i++ {
		row, qkv := g.live[i], g.s.qkv[i*width:(i+1)*width]
		w.rotateRow(q, k, qkv, layer, row.cached)
		c.store(row.at, row.cached, k, qkv, d)
		c.attend(w, g.s.att[i*d.Q:(i+1)*d.Q], q, row.at, row.cached+1, d)
		if layer+1 == w.m.shape.Layers {
			row.cached++
		}
	}
}

// mix adds the attention's output to the residual stream.
func (g *decoding[T]) mix(l lot[T], layer int) {
	l.linear(g.s.x, g.s.att, l.w.m.f.layers[layer].out, true)
}

// feed fills h, the middle of the feed-forward layer.
func (g *decoding[T]) feed(l lot[T], layer int) {
	m := l.w.m
	f, cols := m.shape.FFN, l.cols(m.shape.FFN)
	lo, hi := l.rows.lo, l.rows.hi
	l.w.gateUp(g.s.gu[lo*2*f:], l.w.s.xn[lo*m.shape.Hidden:], hi-lo, &m.f.layers[layer], cols)
	for i := lo; i < hi; i++ {
		gate, up := g.s.gu[i*2*f:], g.s.gu[i*2*f+f:]
		swiglu(g.s.h[i*f+cols.lo:i*f+cols.hi], gate[cols.lo:cols.hi], up[cols.lo:cols.hi])
	}
}

// narrow adds the feed-forward layer's output to the residual stream.
func (g *decoding[T]) narrow(l lot[T], layer int) {
	l.linear(g.s.x, g.s.h, l.w.m.f.layers[layer].down, true)
}
