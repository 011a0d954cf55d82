package cpu

// embedRows writes the embeddings of the tokens to x.
func (w *worker[T]) embedRows(x []T, tokens []int32) {
	h := w.m.shape.Hidden
	for i, t := range tokens {
		copy(x[i*h:(i+1)*h], w.m.w.embed[int(t)*h:])
	}
}

// forward runs a chunk through all layers.
func (w *worker[T]) forward(c *chunk, a *acts[T]) {
	w.embedRows(a.layers[0].x, c.tokens)
	for i := range a.layers {
		w.layer(c, a, i)
	}
}

// layer runs a chunk through one layer and returns the rotated keys (n×K).
func (w *worker[T]) layer(c *chunk, a *acts[T], i int) []T {
	l := &a.layers[i]
	w.project(l, i, c.len())
	giveWay()
	k := w.rotateChunk(l, i, c)
	w.attend(l, c, k)
	giveWay()
	w.finish(l, i, c.len(), a.after(i))
	giveWay()
	return k
}

// project fills l.qkv from l.x.
func (w *worker[T]) project(l *layerActs[T], layer, n int) {
	d, lw := w.m.dims(), &w.m.w.layers[layer]
	xn := sized(&w.s.xn, n*d.H)
	rmsNorm(xn, l.x, lw.norm1, w.m.shape.NormEps)
	w.linear(l.qkv, xn, n, w.m.f.layers[layer].qkv, false)
	addBias(l.qkv[:n*(d.Q+2*d.K)], lw.bias)
}

// addBias adds the bias to every row; a nil bias adds nothing.
func addBias[T float](rows, bias []T) {
	if bias == nil {
		return
	}
	for i := 0; i < len(rows); i += len(bias) {
		addTo(rows[i:i+len(bias)], bias)
	}
}

// rotateChunk norms and rotates queries and keys into scratch and returns the keys.
func (w *worker[T]) rotateChunk(l *layerActs[T], layer int, c *chunk) []T {
	d := w.m.dims()
	q, k := sized(&w.s.q, c.len()*d.Q), sized(&w.s.k, c.len()*d.K)
	for i := range c.row {
		from := c.start[i] - c.offset(i)
		for t := c.start[i]; t < c.start[i+1]; t++ {
			w.rotateRow(q[t*d.Q:(t+1)*d.Q], k[t*d.K:(t+1)*d.K], l.qkv[t*(d.Q+2*d.K):], layer, t-from)
		}
	}
	return k
}

func (w *worker[T]) rotateRow(q, k, qkv []T, layer, pos int) {
	lw, eps := &w.m.w.layers[layer], w.m.shape.NormEps
	w.m.rope.heads(q, qkv[:len(q)], lw.normQ, pos, eps)
	w.m.rope.heads(k, qkv[len(q):len(q)+len(k)], lw.normK, pos, eps)
}

// attend fills l.att and l.lse, each sequence on its own.
func (w *worker[T]) attend(l *layerActs[T], c *chunk, k []T) {
	d := w.m.dims()
	vw := d.Q + 2*d.K
	a := newAttention(w.mm, d, vw)
	p := sized(&w.s.p, attentionBlock*c.longest())
	for i := range c.row {
		lo, n := c.start[i], c.start[i+1]-c.start[i]
		if c.stem[i] >= 0 {
			b := newAttention(w.mm, d, d.K)
			ks, vs := w.joinStem(l, c, i, k)
			b.forward(l.att[lo*d.Q:], l.lse[lo*a.heads:], w.s.q[lo*d.Q:], ks, vs, p, c.offset(i), c.offset(i)+n)
			continue
		}
		a.forward(l.att[lo*d.Q:], l.lse[lo*a.heads:], w.s.q[lo*d.Q:], k[lo*d.K:], l.qkv[lo*vw+d.Q+d.K:], p, 0, n)
	}
}

// joinStem returns the keys and the values of leaf i behind its stem's, [tokens][K] each, in scratch.
func (w *worker[T]) joinStem(l *layerActs[T], c *chunk, i int, k []T) (keys, values []T) {
	d := w.m.dims()
	n := c.offset(i) + c.start[i+1] - c.start[i]
	keys, values = sized(&w.s.keys, n*d.K), sized(&w.s.values, n*d.K)
	at := 0
	for _, s := range []int{c.stem[i], i} {
		for t := c.start[s]; t < c.start[s+1]; t++ {
			copy(keys[at:at+d.K], k[t*d.K:])
			copy(values[at:at+d.K], l.qkv[t*(d.Q+2*d.K)+d.Q+d.K:])
			at += d.K
		}
	}
	return keys, values
}

// finish adds the attention's and the feed-forward layer's output to the residual stream.
func (w *worker[T]) finish(l *layerActs[T], layer, n int, out []T) {
	d, lw, f := w.m.dims(), &w.m.w.layers[layer], &w.m.f.layers[layer]
	copy(l.mid, l.x[:n*d.H])
	w.linear(l.mid, l.att, n, f.out, true)
	xn := sized(&w.s.xn, n*d.H)
	rmsNorm(xn, l.mid[:n*d.H], lw.norm2, w.m.shape.NormEps)
	w.gateUp(l.gu, xn, n, f, interval{0, d.F})
	h := sized(&w.s.h, n*d.F)
	swigluRows(h, l.gu, d.F)
	copy(out, l.mid[:n*d.H])
	w.linear(out, h, n, f.down, true)
}
