package cpu

// backward takes dx, the gradient at the output of the last layer, through all layers of a kept chunk and adds to
// the worker's gradient.
func (w *worker[T]) backward(c *chunk, a *acts[T], dx []T) {
	for i := len(a.layers) - 1; i >= 0; i-- {
		w.finishBack(&a.layers[i], i, c.len(), dx)
		w.attendBack(&a.layers[i], i, c, dx)
	}
	h := w.m.shape.Hidden
	for i, t := range c.tokens {
		addTo(w.grad.embed[int(t)*h:(int(t)+1)*h], dx[i*h:(i+1)*h])
	}
}

// finishBack takes dx back through the feed-forward layer; dx is then the gradient at l.mid.
func (w *worker[T]) finishBack(l *layerActs[T], layer, n int, dx []T) {
	d, s := w.m.dims(), &w.s
	lw, g := &w.m.w.layers[layer], &w.grad.layers[layer]
	dh, h, dgu := sized(&s.dh, n*d.F), sized(&s.h, n*d.F), sized(&s.dgu, n*2*d.F)
	w.mm.gemm(false, false, n, d.F, d.H, 1, dx, d.H, lw.down, d.F, 0, dh, d.F)
	swigluRowsBack(dgu, h, dh, l.gu, d.F)
	giveWay()
	w.mm.gemm(true, false, d.H, d.F, n, 1, dx, d.H, h, d.F, 1, g.down, d.F)
	giveWay()
	w.normedLinearBack(dx, g.gu, g.norm2, dgu, l.mid, lw.norm2, lw.gu, n, 2*d.F)
}

// normedLinearBack goes back through y = rmsNorm(x)·Wᵀ, adding to dx; W is out×H.
func (w *worker[T]) normedLinearBack(dx, dw, dnorm, dy, x, norm, weight []T, n, out int) {
	d, eps := w.m.dims(), w.m.shape.NormEps
	xn, dxn := sized(&w.s.xn, n*d.H), sized(&w.s.dxn, n*d.H)
	rmsNorm(xn, x[:n*d.H], norm, eps)
	w.linearBack(dxn, dw, dy, xn, weight, n, d.H, out)
	rmsNormBack(dx, dnorm, dxn, x[:n*d.H], norm, eps)
}

// attendBack takes dx, the gradient at l.mid, back to the layer's input.
func (w *worker[T]) attendBack(l *layerActs[T], layer int, c *chunk, dx []T) {
	d, s, n := w.m.dims(), &w.s, c.len()
	lw, g := &w.m.w.layers[layer], &w.grad.layers[layer]
	width := d.Q + 2*d.K
	k := w.rotateChunk(l, layer, c)
	datt := sized(&s.datt, n*d.Q)
	w.linearBack(datt, g.out, dx, l.att, lw.out, n, d.Q, d.H)
	dqkv, dq, dk := sized(&s.dqkv, n*width), sized(&s.dq, n*d.Q), sized(&s.dk, n*d.K)
	clear(dqkv)
	clear(dk)
	a := newAttention(w.mm, d, width)
	p, dp := sized(&s.p, attentionBlock*c.longest()), sized(&s.dp, attentionBlock*c.longest())
	for i := range c.row {
		if c.stem[i] >= 0 { // before the stems, because leaves add to their stem's keys and values
			w.leafBack(l, c, i, k)
		}
	}
	for i := range c.row {
		lo, len, from := c.start[i], c.start[i+1]-c.start[i], c.start[i]-c.offset(i)
		if c.stem[i] < 0 {
			v := lo*width + d.Q + d.K
			a.backward(dq[lo*d.Q:], dk[lo*d.K:], dqkv[v:], datt[lo*d.Q:], l.att[lo*d.Q:], l.lse[lo*a.heads:],
				s.q[lo*d.Q:], k[lo*d.K:], l.qkv[v:], p, dp, 0, len)
		}
		for t := lo; t < lo+len; t++ {
			w.rotateRowBack(dqkv[t*width:], dq[t*d.Q:(t+1)*d.Q], dk[t*d.K:(t+1)*d.K], l.qkv[t*width:], layer,
				t-from)
		}
	}
	giveWay()
	if g.bias != nil {
		for t := range n {
			addTo(g.bias, dqkv[t*width:(t+1)*width])
		}
	}
	w.normedLinearBack(dx, g.qkv, g.norm1, dqkv, l.x, lw.norm1, lw.qkv, n, width)
}

// leafBack is the attention's backward pass of leaf i. It writes the leaf's dq, and adds to dk and dv of the leaf and
// of its stem. The gradients are in scratch, as attendBack prepared it.
func (w *worker[T]) leafBack(l *layerActs[T], c *chunk, i int, k []T) {
	d, s := w.m.dims(), &w.s
	width, lo, n := d.Q+2*d.K, c.start[i], c.offset(i)+c.start[i+1]-c.start[i]
	keys, values := w.joinStem(l, c, i, k)
	dks, dvs := sized(&s.dkeys, n*d.K), sized(&s.dvalues, n*d.K)
	clear(dks)
	clear(dvs)
	a := newAttention(w.mm, d, d.K)
	a.backward(s.dq[lo*d.Q:], dks, dvs, s.datt[lo*d.Q:], l.att[lo*d.Q:], l.lse[lo*a.heads:], s.q[lo*d.Q:], keys,
		values, s.p, s.dp, c.offset(i), n)
	at := 0
	for _, of := range []int{c.stem[i], i} {
		for t := c.start[of]; t < c.start[of+1]; t++ {
			addTo(s.dk[t*d.K:(t+1)*d.K], dks[at:at+d.K])
			addTo(s.dqkv[t*width+d.Q+d.K:(t+1)*width], dvs[at:at+d.K])
			at += d.K
		}
	}
}

func (w *worker[T]) rotateRowBack(dqkv, dq, dk, qkv []T, layer, pos int) {
	lw, g, eps := &w.m.w.layers[layer], &w.grad.layers[layer], w.m.shape.NormEps
	q, k := len(dq), len(dk)
	w.m.rope.headsBack(dqkv[:q], g.normQ, dq, qkv[:q], lw.normQ, pos, eps)
	w.m.rope.headsBack(dqkv[q:q+k], g.normK, dk, qkv[q:q+k], lw.normK, pos, eps)
}
