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
	run := g.byRowsStep
	if g.byColumns() {
		run = g.byColumnsStep
	}
	if err := run(); err != nil {
		return err
	}
	for _, row := range g.live {
		row.cached++
	}
	return nil
}

// byRowsStep is step with the rows divided among the parts.
func (g *decoding[T]) byRowsStep() error {
	return g.rows(func(l lot[T]) error {
		g.embed(l)
		for i := range g.r.model.shape.Layers {
			g.normIn(l, i)
			g.project(l, i)
			for row := l.rows.lo; row < l.rows.hi; row++ {
				for head := range g.keyHeads() {
					g.attend(l.w, row, head, i)
				}
			}
			g.mix(l, i)
			g.normMid(l, i)
			g.feed(l, i)
			g.narrow(l, i)
		}
		return nil
	})
}

// byColumnsStep is step with the columns divided among the parts.
func (g *decoding[T]) byColumnsStep() error {
	err := g.rows(func(l lot[T]) error {
		g.embed(l)
		return nil
	})
	for i := 0; i < g.r.model.shape.Layers && err == nil; i++ {
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
	if err := g.heads(func(w *worker[T], row, head int) { g.attend(w, row, head, i) }); err != nil {
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

// keyHeads is the number of key heads, each with the queries that share it.
func (g *decoding[T]) keyHeads() int { return g.r.model.shape.KVHeads }

// attend adds the key and the value of one head of a live row to the cache, and fills the part of att that belongs to
// the queries that share this head. Parts divide rows and heads, not columns.
func (g *decoding[T]) attend(w *worker[T], i, head, layer int) {
	d, row, c := w.m.dims(), g.live[i], &g.caches[layer]
	width, shared := d.Q+2*d.K, d.Q/d.K*d.D
	qkv := g.s.qkv[i*width : (i+1)*width]
	q, k := sized(&w.s.q, d.Q), sized(&w.s.k, d.D)
	lw, eps := &w.m.w.layers[layer], w.m.shape.NormEps
	w.m.rope.heads(q[head*shared:(head+1)*shared], qkv[head*shared:(head+1)*shared], lw.normQ, row.cached, eps)
	w.m.rope.heads(k, qkv[d.Q+head*d.D:d.Q+(head+1)*d.D], lw.normK, row.cached, eps)
	c.storeHead(row.at, row.cached, head, k, qkv[d.Q+d.K+head*d.D:], d)
	c.attendHead(w, g.s.att[i*d.Q:(i+1)*d.Q], q, row.at, row.cached+1, head, d)
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
