package sgemm

// packB lays depth×cols of op(B) out in panels; a last narrow panel is filled up with zeros.
func (g *Matmul) packB(p *product, at, depth, col, cols int) {
	panels := (cols + tileCols - 1) / tileCols
	g.b = grown(g.b, panels*depth*tileCols)
	j := 0
	if !p.tb {
		for ; j+stripCols <= cols; j += stripCols {
			strips(g.b[j*depth:(j+stripCols)*depth], p.b[at*p.ldb+col+j:], p.ldb)
		}
	}
	for ; j < cols; j += tileCols {
		panel, width := g.b[j*depth:(j+tileCols)*depth], min(tileCols, cols-j)
		if width < tileCols {
			clear(panel)
		}
		switch {
		case p.tb && width == tileCols:
			turn(panel, p.b[(col+j)*p.ldb+at:], p.ldb, depth)
		case p.tb:
			turnEdge(panel, p.b[(col+j)*p.ldb+at:], p.ldb, depth, width)
		default:
			for l := range depth {
				from := (at+l)*p.ldb + col + j
				copy(panel[l*tileCols:], p.b[from:from+width])
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

// turn makes 16 rows of B the columns of a panel.
func turn(panel, b []float32, ldb, depth int) {
	if whole := depth / 8; whole > 0 {
		turn8(whole, &b[0], uintptr(4*ldb), &panel[0], 4*tileCols)
		turn8(whole, &b[8*ldb], uintptr(4*ldb), &panel[8], 4*tileCols)
	}
	if from := depth / 8 * 8; from < depth {
		turnEdge(panel[from*tileCols:], b[from:], ldb, depth-from, tileCols)
	}
}

func turnEdge(panel, b []float32, ldb, depth, width int) {
	for j := range width {
		for l, v := range b[j*ldb : j*ldb+depth] {
			panel[l*tileCols+j] = v
		}
	}
}

// operand says where elements of op(A) lie: row i of a tile, column l at i·rs + l·cs; the next six rows step on.
type operand struct {
	data         []float32
	rs, cs, step int
}

// rowsOfA gives rows of op(A) where they lie, or, of a transposed A, a copy [rows/6][depth][6], because columns far
// apart would fall on the same lines of the cache.
func (g *Matmul) rowsOfA(p *product, row, rows, at, depth int) operand {
	if !p.ta {
		return operand{data: p.a[row*p.lda+at:], rs: p.lda, cs: 1, step: tileRows * p.lda}
	}
	// Two floats of room after each tile, for pack6x4.
	step := tileRows*depth + 2
	g.a = grown(g.a, blockRows/tileRows*step)
	i := 0
	for ; i+4*tileRows+2 <= min(rows+2, p.m-row); i += 4 * tileRows {
		pack6x4(depth, &p.a[at*p.lda+row+i], uintptr(4*p.lda), &g.a[i/tileRows*step], uintptr(4*step))
	}
	for ; i < rows; i += tileRows {
		tile := g.a[i/tileRows*step:]
		for l := range depth {
			from := (at+l)*p.lda + row + i
			copy(tile[l*tileRows:(l+1)*tileRows], p.a[from:from+min(tileRows, rows-i)])
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
