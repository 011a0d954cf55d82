package sgemm

const dotCols = 4

// few multiplies a handful of rows by a transposed B: four rows of B at a time, once through the first cache, under
// all rows of A.
func (p *product) few(add bool) {
	var c [3 * dotCols]float32
	whole := p.n / dotCols * dotCols
	for j := 0; j < p.n; j += dotCols {
		// The last columns, fewer than four, come out of a tile that begins earlier.
		from := min(j, p.n-dotCols)
		b := p.b[from*p.ldb:]
		for i := 0; i < p.m; {
			rows := fewAtOnce(p.m - i)
			a := p.a[i*p.lda:]
			if j < whole {
				p.dots(rows, a, b, p.c[i*p.ldc+j:], p.ldc, add)
			} else {
				p.dots(rows, a, b, c[:], dotCols, false)
				for r := range rows {
					keep(p.c[(i+r)*p.ldc+j:(i+r)*p.ldc+p.n], c[r*dotCols+j-from:], add)
				}
			}
			i += rows
		}
	}
}

// fewAtOnce splits rows into threes and twos; a single row comes only alone, because its sums would wait for
// each other.
func fewAtOnce(left int) int {
	if left == 4 {
		return 2
	}
	return min(left, 3)
}

// dots computes rows×4 elements.
func (p *product) dots(rows int, a, b, c []float32, ldc int, add bool) {
	k8 := p.k / 8
	if k8 == 0 {
		for i := range rows {
			for j := range dotCols {
				if !add {
					c[i*ldc+j] = 0
				}
			}
		}
	} else {
		lda, ldb, step := uintptr(4*p.lda), uintptr(4*p.ldb), uintptr(4*ldc)
		switch rows {
		case 1:
			dot1x4(k8, &a[0], lda, &b[0], ldb, &c[0], step, add)
		case 2:
			dot2x4(k8, &a[0], lda, &b[0], ldb, &c[0], step, add)
		default:
			dot3x4(k8, &a[0], lda, &b[0], ldb, &c[0], step, add)
		}
	}
	if k8*8 == p.k {
		return
	}
	for i := range rows {
		for j := range dotCols {
			for l := k8 * 8; l < p.k; l++ {
				c[i*ldc+j] += a[i*p.lda+l] * b[j*p.ldb+l]
			}
		}
	}
}

func keep(to, from []float32, add bool) {
	for i := range to {
		if add {
			to[i] += from[i]
			continue
		}
		to[i] = from[i]
	}
}
