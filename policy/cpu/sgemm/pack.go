package sgemm

// packB lays a block of op(B) out in panels; a last narrow panel is filled up with zeros.
func packB(dst, b []float32, ldb int, tb bool, k, cols interval) {
	j, depth := 0, k.n
	if !tb {
		for ; j+stripCols <= cols.n; j += stripCols {
			strips(dst[j*depth:(j+stripCols)*depth], b[k.from*ldb+cols.from+j:], ldb)
		}
	}
	for ; j < cols.n; j += tileCols {
		panel, width := dst[j*depth:(j+tileCols)*depth], min(tileCols, cols.n-j)
		if width < tileCols {
			clear(panel)
		}
		switch {
		case tb && width == tileCols:
			turn(panel, b[(cols.from+j)*ldb+k.from:], ldb, depth)
		case tb:
			turnEdge(panel, b[(cols.from+j)*ldb+k.from:], ldb, depth, width)
		case width == tileCols:
			strip(panel, b[k.from*ldb+cols.from+j:], ldb)
		default:
			for l := range depth {
				from := (k.from+l)*ldb + cols.from + j
				copy(panel[l*tileCols:], b[from:from+width])
			}
		}
	}
}

// stripCols are copied to four panels at once: whole lines of the cache in a row, few streams of writes.
const stripCols = 4 * tileCols

func strips(panels, b []float32, ldb int) {
	step := len(panels) / 4
	p0, p1, p2, p3 := panels[:step], panels[step:2*step], panels[2*step:3*step], panels[3*step:4*step]
	for at := 0; ; at += tileCols {
		row := (*[stripCols]float32)(b)
		*(*[tileCols]float32)(p0[at:]) = *(*[tileCols]float32)(row[:])
		*(*[tileCols]float32)(p1[at:]) = *(*[tileCols]float32)(row[tileCols:])
		*(*[tileCols]float32)(p2[at:]) = *(*[tileCols]float32)(row[2*tileCols:])
		*(*[tileCols]float32)(p3[at:]) = *(*[tileCols]float32)(row[3*tileCols:])
		if at+tileCols == step {
			return
		}
		b = b[ldb:]
	}
}

func strip(panel, b []float32, ldb int) {
	for at, from := 0, 0; at < len(panel); at, from = at+tileCols, from+ldb {
		*(*[tileCols]float32)(panel[at:]) = *(*[tileCols]float32)(b[from:])
	}
}

// turn makes 16 rows of B the columns of a panel.
func turn(panel, b []float32, ldb, depth int) {
	whole := depth / 8 * 8
	if whole > 0 {
		turn8(whole/8, &b[0], uintptr(4*ldb), &panel[0], 4*tileCols)
		turn8(whole/8, &b[8*ldb], uintptr(4*ldb), &panel[8], 4*tileCols)
	}
	if whole < depth {
		turnEdge(panel[whole*tileCols:], b[whole:], ldb, depth-whole, tileCols)
	}
}

func turnEdge(panel, b []float32, ldb, depth, width int) {
	for j := range width {
		for l, v := range b[j*ldb : j*ldb+depth] {
			panel[l*tileCols+j] = v
		}
	}
}

// operand says where elements of op(A) lie: row i of six, column l at i·rs + l·cs; the next six rows are a step on.
type operand struct {
	data         []float32
	rs, cs, step int
}

// at is where row i begins.
func (o operand) at(i int) []float32 { return o.data[i/tileRows*o.step+i%tileRows*o.rs:] }

// rowsOfA gives rows of op(A) where they lie, or, of a transposed A, a copy [rows/6][depth][6], because columns far
// apart would fall on the same lines of the cache.
func (g *Matmul) rowsOfA(p *product, rows, k interval) operand {
	if !p.ta {
		return operand{data: p.a[rows.from*p.lda+k.from:], rs: p.lda, cs: 1, step: tileRows * p.lda}
	}
	// Two floats of room after each six rows, for pack6x4.
	step := tileRows*k.n + 2
	g.a = grown(g.a, blockRows/tileRows*step)
	i := 0
	for ; i+4*tileRows <= rows.n && rows.from+i+4*tileRows+2 <= p.m; i += 4 * tileRows {
		pack6x4(k.n, &p.a[k.from*p.lda+rows.from+i], uintptr(4*p.lda), &g.a[i/tileRows*step], uintptr(4*step))
	}
	for ; i < rows.n; i += tileRows {
		six, from := g.a[i/tileRows*step:], p.a[k.from*p.lda+rows.from+i:]
		for l := range k.n {
			to := six[l*tileRows : (l+1)*tileRows]
			if rows.n-i >= tileRows {
				*(*[tileRows]float32)(to) = *(*[tileRows]float32)(from[l*p.lda:])
				continue
			}
			copy(to, from[l*p.lda:l*p.lda+rows.n-i])
		}
	}
	return operand{data: g.a, rs: 1, cs: tileRows, step: step}
}

// grown returns buf with length n at least.
func grown(buf []float32, n int) []float32 {
	if cap(buf) < n {
		return make([]float32, n)
	}
	return buf[:n]
}
