package cpu

// cache holds one layer's keys and values of the rows that one part generates. A row's place begins at a token
// offset that is a multiple of cacheBlock.
type cache[T float] struct {
	k, v []T // v is [token][K]; k likewise, or blocked
	// blocked keys are [token/8][K][8]: eight tokens of one dimension side by side, so that eight scores come
	// from one register without sums across it. It needs the fast loops and heads of a multiple of eight.
	blocked bool
}

const cacheBlock = 8

// roundUp is the least multiple of cacheBlock that holds n tokens.
func roundUp(n int) int { return (n + cacheBlock - 1) / cacheBlock * cacheBlock }

func (c *cache[T]) reset(tokens int, d dims) {
	sized(&c.k, tokens*d.K)
	sized(&c.v, tokens*d.K)
	c.blocked = useFast[T]() && d.D%8 == 0
}

// store puts the keys (n×K) and, from qkv, the values of n tokens at token offset base+pos.
func (c *cache[T]) store(base, pos int, k, qkv []T, d dims) {
	width, n := d.Q+2*d.K, len(k)/d.K
	for t := range n {
		at := base + pos + t
		copy(c.v[at*d.K:(at+1)*d.K], qkv[t*width+d.Q+d.K:(t+1)*width])
		row := k[t*d.K : (t+1)*d.K]
		if !c.blocked {
			copy(c.k[at*d.K:], row)
			continue
		}
		block := c.k[at/cacheBlock*cacheBlock*d.K:]
		block = block[at%cacheBlock : d.K*cacheBlock]
		for i, x := range row {
			block[i*cacheBlock] = x
		}
	}
}

// copyRow copies the first n tokens of one row's place to another's.
func (c *cache[T]) copyRow(to, from, n int, d dims) {
	n = roundUp(n) * d.K
	copy(c.k[to*d.K:to*d.K+n], c.k[from*d.K:])
	copy(c.v[to*d.K:to*d.K+n], c.v[from*d.K:])
}

// attend is attention of one token's queries over the n tokens at base; queries that share a key head go together.
func (c *cache[T]) attend(w *worker[T], out, q []T, base, n int, d dims) {
	a := newAttention(w.mm, d, d.K)
	k, v := c.k[base*d.K:(base+roundUp(n))*d.K], c.v[base*d.K:(base+n)*d.K]
	if c.blocked {
		p, qx := sized(&w.s.p, roundUp(n)), sized(&w.s.single, d.D*cacheBlock)
		for h := range a.heads {
			at, key := h*d.D, h/a.shared*d.D
			fast.attend(as[float32](out[at:at+d.D]), as[float32](q[at:at+d.D]), as[float32](k[key*cacheBlock:]), as[float32](v[key:]),
				as[float32](p), as[float32](qx), n, d.K, float32(a.scale))
		}
		return
	}
	p := sized(&w.s.p, a.shared*n)
	for h := range d.K / d.D {
		group := h * a.shared * d.D
		a.mm.gemm(false, true, a.shared, n, d.D, a.scale, q[group:], d.D, k[h*d.D:], d.K, 0, p, n)
		for i := range a.shared {
			softmaxRow(p[i*n:(i+1)*n], n)
		}
		a.mm.gemm(false, false, a.shared, d.D, n, 1, p, n, v[h*d.D:], d.K, 0, out[group:], d.D)
	}
}
