package sgemm

const (
	tileRows, tileCols = 6, 16
	// blockK × tileCols floats of B, 16 KiB, stay in the first cache while tiles go down the rows of A.
	blockK = 256
	// blockRows × blockK floats of A, 120 KiB, stay in the second cache while panels go by.
	blockRows = 120
	// blockCols bounds the packed block of B: 1 MiB.
	blockCols = 1024
	// fewRows is where packing the transposed B begins to pay.
	fewRows = 48
)

// Matmul multiplies for one goroutine at a time; the zero value is ready. Its memory only grows.
type Matmul struct {
	b []float32 // packed panels of a block
	a []float32 // blockRows of a transposed A
	// Of a tile at C's edge: its rows of A, and itself.
	rows []float32
	c    [tileRows * tileCols]float32
}

// Gemm sets C = alpha·op(A)·op(B) + beta·C, all row-major: op(A) is m×k, op(B) is k×n, C is m×n; op transposes
// where the flag is set; lda, ldb, ldc are the distances between rows as stored. With beta 0, C need not hold
// numbers. It panics where a matrix does not fit its memory.
func (g *Matmul) Gemm(ta, tb bool, m, n, k int, alpha float32, a []float32, lda int, b []float32, ldb int, beta float32, c []float32, ldc int) {
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
	if k == 0 {
		return
	}
	p := product{m: m, n: n, k: k, alpha: alpha, a: a, lda: lda, b: b, ldb: ldb, c: c, ldc: ldc, ta: ta, tb: tb}
	if !ta && tb && m <= fewRows && alpha == 1 && n >= dotCols {
		p.few(beta != 0)
		return
	}
	g.many(&p, beta != 0)
}

// product is one call's operands.
type product struct {
	m, n, k       int
	alpha         float32
	a, b, c       []float32
	lda, ldb, ldc int
	ta, tb        bool
}

// many goes over blocks of columns and of k, packs B, and lets tiles do the rest.
func (g *Matmul) many(p *product, add bool) {
	for col := 0; col < p.n; col += blockCols {
		cols := min(blockCols, p.n-col)
		for at := 0; at < p.k; at += blockK {
			depth := min(blockK, p.k-at)
			g.packB(p, at, depth, col, cols)
			for row := 0; row < p.m; row += blockRows {
				g.tiles(p, row, min(blockRows, p.m-row), at, depth, col, cols, add || at > 0)
			}
		}
	}
}

// tiles sets or adds to rows×cols elements of C one block's product.
func (g *Matmul) tiles(p *product, row, rows, at, depth, col, cols int, add bool) {
	a := g.rowsOfA(p, row, rows, at, depth)
	for j := 0; j < cols; j += tileCols {
		panel, width := g.b[j*depth:], min(tileCols, cols-j)
		for i := 0; i < rows; i += tileRows {
			height := min(tileRows, rows-i)
			from, c := a.data[i/tileRows*a.step:], p.c[(row+i)*p.ldc+col+j:]
			if height == tileRows && width == tileCols {
				tile6x16(depth, &from[0], uintptr(4*a.rs), uintptr(4*a.cs), &panel[0], &c[0], uintptr(4*p.ldc), p.alpha, add)
				continue
			}
			g.edge(depth, a, from, panel, c, p, height, width, add)
		}
	}
}

// edge computes a tile of height×width by way of a whole one, of which only what is C's leaves; rows that A does
// not have are made of whatever the buffer holds.
func (g *Matmul) edge(depth int, a operand, from, panel, c []float32, p *product, height, width int, add bool) {
	if height < tileRows {
		if g.rows == nil {
			g.rows = make([]float32, tileRows*blockK)
		}
		for i := range height {
			for l := range depth {
				g.rows[i*depth+l] = from[i*a.rs+l*a.cs]
			}
		}
		a, from = operand{rs: depth, cs: 1}, g.rows
	}
	tile6x16(depth, &from[0], uintptr(4*a.rs), uintptr(4*a.cs), &panel[0], &g.c[0], 4*tileCols, p.alpha, false)
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
