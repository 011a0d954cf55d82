package cpu

import "github.com/ropewalk/ropewalk/policy/cpu/sgemm"

// cache holds one layer's keys and values of the rows that generate.
type cache[T float] struct {
	k, v []T // [region][token][K], or in panels
	// panels, with the own kernels and heads of a multiple of 16, are how those kernels read the second operand, so
	// that a token's attention is two small products: a region's keys are [head][token/16][D][16], its values
	// [head][D/16][token][16].
	panels bool
}

// region is where one row's tokens are stored in every layer's cache.
type region struct{ base, room int } // in tokens; room is a multiple of cacheBlock

const cacheBlock = 16

// roundUp is the least multiple of cacheBlock that holds n tokens.
func roundUp(n int) int { return (n + cacheBlock - 1) / cacheBlock * cacheBlock }

// newCaches makes every layer's cache for the given tokens, all in one piece of memory.
func newCaches[T float](memory *[]T, layers, tokens int, d dims, mm matmul[T]) []cache[T] {
	size := tokens * d.K
	rest := sized(memory, 2*layers*size)
	_, own := mm.(*ownMatmul[T])
	out := make([]cache[T], layers)
	for i := range out {
		out[i] = cache[T]{k: rest[:size:size], v: rest[size : 2*size : 2*size], panels: own && d.D%cacheBlock == 0}
		rest = rest[2*size:]
	}
	return out
}

// head is where the keys, and the values, of one head of a region begin.
func (p region) head(h int, d dims) int { return p.base*d.K + h*p.room*d.D }

// store puts the keys (n×K) and, from qkv, the values of n tokens from pos on.
func (c *cache[T]) store(p region, pos int, k, qkv []T, d dims) {
	width := d.Q + 2*d.K
	for t := range len(k) / d.K {
		for h := 0; h < d.K; h += d.D {
			c.storeHead(p, pos+t, h/d.D, k[t*d.K+h:t*d.K+h+d.D], qkv[t*width+d.Q+d.K+h:], d)
		}
	}
}

// storeHead puts one token's key and value of one head; both begin with that head.
func (c *cache[T]) storeHead(p region, token, head int, key, value []T, d dims) {
	if !c.panels {
		at := (p.base+token)*d.K + head*d.D
		copy(c.k[at:at+d.D], key)
		copy(c.v[at:at+d.D], value)
		return
	}
	at := p.head(head, d)
	block := c.k[at+token/cacheBlock*cacheBlock*d.D:]
	block = block[token%cacheBlock : d.D*cacheBlock]
	for i, x := range key[:d.D] {
		block[i*cacheBlock] = x
	}
	for i := 0; i < d.D; i += cacheBlock {
		copy(c.v[at+i*p.room+token*cacheBlock:], value[i:i+cacheBlock])
	}
}

// copyRegion copies the first n tokens of one region to another.
func (c *cache[T]) copyRegion(to, from region, n int, d dims) {
	if !c.panels {
		copy(c.k[to.base*d.K:], c.k[from.base*d.K:(from.base+n)*d.K])
		copy(c.v[to.base*d.K:], c.v[from.base*d.K:(from.base+n)*d.K])
		return
	}
	for h := range d.K / d.D {
		at, was := to.head(h, d), from.head(h, d)
		copy(c.k[at:], c.k[was:was+roundUp(n)*d.D])
		for i := 0; i < d.D; i += cacheBlock {
			copy(c.v[at+i*to.room:], c.v[was+i*from.room:was+i*from.room+n*cacheBlock])
		}
	}
}

// attend is attention of one token's queries over the first n tokens of a region.
func (c *cache[T]) attend(w *worker[T], out, q []T, at region, n int, d dims) {
	for h := range d.K / d.D {
		c.attendHead(w, out, q, at, n, h, d)
	}
}

// attendHead is attend for the queries that share one key head, which go together.
func (c *cache[T]) attendHead(w *worker[T], out, q []T, at region, n, h int, d dims) {
	a := newAttention(w.mm, d, d.K)
	width := roundUp(n)
	p := sized(&w.s.p, a.shared*width)
	group := h * a.shared * d.D
	if c.panels {
		k := c.k[at.head(h, d):]
		w.mm.(*ownMatmul[T]).panels(
			a.shared, width, d.D, a.scale, q[group:], d.D, k, cacheBlock*d.D, false, p, width,
		)
	} else {
		w.mm.gemm(false, true, a.shared, n, d.D, a.scale, q[group:], d.D, c.k[at.base*d.K+h*d.D:], d.K, 0, p, width)
	}
	for i := range a.shared {
		softmaxRow(p[i*width:(i+1)*width], n)
	}
	if c.panels {
		v := c.v[at.head(h, d):]
		w.mm.(*ownMatmul[T]).panels(a.shared, d.D, n, 1, p, width, v, cacheBlock*at.room, false, out[group:], d.D)
	} else {
		w.mm.gemm(false, false, a.shared, d.D, n, 1, p, width, c.v[at.base*d.K+h*d.D:], d.K, 0, out[group:], d.D)
	}
}

// attendRows is attention of the queries of several tokens (rows×Q) over a region, in which past tokens precede the
// first one. It adds its products in the order of a whole sequence's attention (attention.forward), so that the result
// does not depend on where a sequence is cut.
func (c *cache[T]) attendRows(w *worker[T], out, q []T, at region, past int, d dims) {
	a := newAttention(w.mm, d, d.K)
	for lo := 0; lo < len(q)/d.Q; lo += attentionBlock {
		rows := min(attentionBlock, len(q)/d.Q-lo)
		n := past + lo + rows
		width := n
		if c.panels {
			width = roundUp(n)
		}
		p := sized(&w.s.p, rows*width)
		for h := range a.heads {
			from, to := q[lo*d.Q+h*d.D:], out[lo*d.Q+h*d.D:]
			c.scores(&a, p, from, at, h/a.shared, rows, width, d)
			for i := range rows {
				softmaxRow(p[i*width:(i+1)*width], past+lo+i+1)
			}
			c.weigh(&a, to, p, at, h/a.shared, rows, n, width, d)
		}
	}
}

// scores writes the scores (rows×width) of queries with a region's first tokens.
func (c *cache[T]) scores(a *attention[T], p, q []T, at region, head, rows, width int, d dims) {
	if c.panels {
		k := c.k[at.head(head, d):]
		a.mm.(*ownMatmul[T]).panels(rows, width, d.D, a.scale, q, d.Q, k, cacheBlock*d.D, false, p, width)
		return
	}
	a.mm.gemm(false, true, rows, width, d.D, a.scale, q, d.Q, c.k[at.base*d.K+head*d.D:], d.K, 0, p, width)
}

// weigh writes the mean (rows×D) of the values of a region's first n tokens, weighted by p.
func (c *cache[T]) weigh(a *attention[T], out, p []T, at region, head, rows, n, width int, d dims) {
	if !c.panels {
		a.mm.gemm(false, false, rows, d.D, n, 1, p, width, c.v[at.base*d.K+head*d.D:], d.K, 0, out, d.Q)
		return
	}
	v := c.v[at.head(head, d):]
	for k := 0; k < n; k += sgemm.BlockK {
		a.mm.(*ownMatmul[T]).panels(
			rows, d.D, min(sgemm.BlockK, n-k), 1, p[k:], width, v[k*cacheBlock:], cacheBlock*at.room, k > 0, out, d.Q,
		)
	}
}
