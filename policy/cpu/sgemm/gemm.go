package sgemm

const (
	tileRows, tileCols = 6, 16
	// blockK × tileCols floats of B, 16 KiB, stay in the first cache while tiles go down the rows of A.
	blockK = 256
	// blockRows × blockK floats of A, 120 KiB, stay in the second cache while panels go by.
	blockRows = 120
	// blockCols bounds the packed block of B: 1 MiB.
	blockCols = 1024
)

// Matmul multiplies for one goroutine at a time; the zero value is ready. Its memory only grows.
type Matmul struct {
	b []float32                    // packed panels of a block
	a []float32                    // blockRows of a transposed A
	c [tileRows * tileCols]float32 // a tile at C's edge
}

// Gemm sets C = alpha·op(A)·op(B) + beta·C, all row-major: op(A) is m×k, op(B) is k×n, C is m×n; op transposes
// where the flag is set; lda, ldb, ldc are the distances between rows as stored. With beta 0, C need not hold
// numbers. It panics where a matrix does not fit its memory.
func (g *Matmul) Gemm(
	ta, tb bool, m, n, k int, alpha float32, a []float32, lda int, b []float32, ldb int, beta float32, c []float32,
	ldc int,
) {
	if m == 0 || n == 0 {
		return
	}
	check("A", ta, m, k, lda, len(a))
	check("B", tb, k, n, ldb, len(b))
	check("C", false, m, n, ldc, len(c))
	if k == 0 || (beta != 0 && beta != 1) {
		scaleRows(c, m, n, ldc, beta)
		beta = 1
	}
	p := product{m: m, alpha: alpha, a: a, lda: lda, ta: ta, c: c, ldc: ldc}
	for col := 0; col < n; col += blockCols {
		cols := min(blockCols, n-col)
		p.c = c[col:]
		for at := 0; at < k; at += blockK {
			depth := min(blockK, k-at)
			g.b = grown(g.b, panels(cols)*tileCols*depth)
			packB(g.b, b, ldb, tb, interval{at, depth}, interval{col, cols})
			g.block(&p, g.b, tileCols*depth, interval{at, depth}, cols, beta != 0 || at > 0)
		}
	}
}

// product is what one call's tiles share.
type product struct {
	m     int
	alpha float32
	a     []float32
	lda   int
	ta    bool
	c     []float32
	ldc   int
	far   bool // B is too large for a core's own cache
}

// interval is n rows or columns from one on.
type interval struct{ from, n int }

// panels is the number of panels that n columns make.
func panels(n int) int { return (n + tileCols - 1) / tileCols }

// block multiplies all rows of A by one packed block of B, whose panels begin step floats apart, into the first cols
// columns of C.
func (g *Matmul) block(p *product, b []float32, step int, k interval, cols int, add bool) {
	if p.m <= 2 && !p.ta && !p.far { // one panel after the other comes from memory faster than two at once
		done := p.wide(b, step, k, cols, add)
		if done == cols {
			return
		}
		rest := *p
		p, b, cols = &rest, b[done/tileCols*step:], cols-done
		p.c = p.c[done:]
	}
	for row := 0; row < p.m; row += blockRows {
		rows := min(blockRows, p.m-row)
		a := g.rowsOfA(p, interval{row, rows}, k)
		for j := 0; j < cols; j += tileCols {
			panel, width := b[j/tileCols*step:], min(tileCols, cols-j)
			rest := b[min(j/tileCols+1, panels(cols)-1)*step:]
			for i, n := 0, 0; i < rows; n++ {
				height := tileHeight(rows-i, p.ta)
				from, c, next := a.at(i), p.c[(row+i)*p.ldc+j:], ahead(panel, rest, n, height == rows, k.n)
				if width < tileCols {
					g.edge(p, k.n, a, from, panel, c, height, width, next, add)
				} else {
					tile(height, k.n, from, a.rs, a.cs, panel, c, p.ldc, next, p.alpha, add)
				}
				i += height
			}
		}
	}
}

// wide multiplies one or two rows by whole panels two at a time, and says how many columns that were.
func (p *product) wide(b []float32, step int, k interval, cols int, add bool) int {
	rs, ldc := p.lda, p.ldc
	if p.m == 1 {
		rs, ldc = 0, 0
	}
	a, j := p.a[k.from:], 0
	for ; j+2*tileCols <= cols; j += 2 * tileCols {
		at := j / tileCols * step
		next := b[min(at+2*step, (panels(cols)-1)*step):]
		tile2x32(k.n, &a[0], uintptr(4*rs), 4, &b[at], uintptr(4*step), &p.c[j], uintptr(4*ldc), &next[0], p.alpha, add)
	}
	return j
}

// ahead is where the n-th tile of a panel is to fetch from: the first two tiles fetch a half each of the next panel,
// further ones what is there already. So does a single tile: it reads one panel after the other without a pause, which
// the processor foresees by itself, and half a panel fetched ahead would get in its way.
func ahead(panel, next []float32, n int, single bool, depth int) *float32 {
	if n > 1 || single {
		return &panel[0]
	}
	return &next[n*depth*tileCols/2]
}

// tileHeight is how many of the rows that are left the next tile takes. Eight are twice four, but not across the
// sixes of a copied A.
func tileHeight(left int, copied bool) int {
	switch {
	case left >= tileRows && (left != 8 || copied):
		return tileRows
	case left >= 4:
		return 4
	}
	return min(left, 2)
}

// tile computes a whole tile; a single row is computed twice, into the same place.
func tile(height, k int, a []float32, rs, cs int, panel, c []float32, ldc int, next *float32, alpha float32, add bool) {
	if height == 1 {
		height, rs, ldc = 2, 0, 0
	}
	switch height {
	case tileRows:
		tile6x16(k, &a[0], uintptr(4*rs), uintptr(4*cs), &panel[0], &c[0], uintptr(4*ldc), next, alpha, add)
	case 4:
		tile4x16(k, &a[0], uintptr(4*rs), uintptr(4*cs), &panel[0], &c[0], uintptr(4*ldc), next, alpha, add)
	case 2:
		tile2x16(k, &a[0], uintptr(4*rs), uintptr(4*cs), &panel[0], &c[0], uintptr(4*ldc), next, alpha, add)
	}
}

// edge computes a tile of which C has only some columns by way of a whole one.
func (g *Matmul) edge(
	p *product, k int, a operand, from, panel, c []float32, height, width int, next *float32, add bool,
) {
	tile(height, k, from, a.rs, a.cs, panel, g.c[:], tileCols, next, p.alpha, false)
	for i := range height {
		to := c[i*p.ldc : i*p.ldc+width]
		for j, v := range g.c[i*tileCols : i*tileCols+width] {
			if add {
				v += to[j]
			}
			to[j] = v
		}
	}
}
