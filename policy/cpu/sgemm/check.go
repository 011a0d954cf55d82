package sgemm

import "fmt"

// check panics where a matrix of rows×cols, as op gives it, reaches beyond its memory: the kernels do not look.
func check(name string, trans bool, rows, cols, ld, have int) {
	if trans {
		rows, cols = cols, rows
	}
	if ld < cols || ld < 1 || (rows > 0 && cols > 0 && (rows-1)*ld+cols > have) {
		panic(
			fmt.Sprintf(
				"gemm: %s of %d×%d with row distance %d does not fit in %d elements", name, rows, cols, ld, have,
			),
		)
	}
}

// scaleRows writes C *= by; with 0, C need not hold numbers.
func scaleRows(c []float32, m, n, ldc int, by float32) {
	for i := range m {
		row := c[i*ldc : i*ldc+n]
		if by == 0 {
			clear(row)
			continue
		}
		for j := range row {
			row[j] *= by
		}
	}
}
