package sgemm

import "fmt"

// Packed is a matrix op(B) laid out once for many products: blocks of k behind each other, each of all panels.
type Packed struct {
	k, n int
	data []float32
}

// farFloats is the size from which a matrix counts as far: 256 KiB. A model's other matrices take its place in a core's
// own cache before it is read again.
const farFloats = 1 << 16

// PackedSize is the number of floats that a packed k×n matrix takes.
func PackedSize(k, n int) int { return k * panels(n) * tileCols }

// Pack lays Wᵀ out, W being out×in with rows in apart, in memory of PackedSize(in, out) floats. Columns may be
// packed piece by piece: only those of W's rows from…to, the first a multiple of 16, are laid out.
func Pack(memory, w []float32, out, in, from, to int) Packed {
	p := Packed{k: in, n: out, data: memory[:PackedSize(in, out)]}
	check("W", false, out, in, in, len(w))
	checkColumns(from, to, out)
	width := panels(out) * tileCols
	for at := 0; at < in && from < to; at += blockK {
		depth := min(blockK, in-at)
		packB(p.data[at*width+from*depth:], w, in, true, interval{at, depth}, interval{from, to - from})
	}
	return p
}

// GemmPacked sets columns from…to, the first a multiple of 16, of the m×n matrix C to those of A·B + beta·C, A being
// m×k and beta 0 or 1. It gives what Gemm gives, to the bit.
func (g *Matmul) GemmPacked(m int, a []float32, lda int, b Packed, from, to int, add bool, c []float32, ldc int) {
	if m == 0 || from >= to {
		return
	}
	check("A", false, m, b.k, lda, len(a))
	check("C", false, m, to, ldc, len(c))
	checkColumns(from, to, b.n)
	p := product{m: m, alpha: 1, a: a, lda: lda, c: c[from:], ldc: ldc, far: len(b.data) >= farFloats}
	width := panels(b.n) * tileCols
	for at := 0; at < b.k; at += blockK {
		depth := min(blockK, b.k-at)
		g.block(&p, b.data[at*width+from*depth:], tileCols*depth, interval{at, depth}, to-from, add || at > 0)
	}
}

// BlockK is the number of products that Gemm and GemmPacked add up before they add the sum to an element of C.
const BlockK = blockK

// GemmPanels sets the m×n matrix C to alpha·A·B, or adds it, A being m×k and B panels of [k][16] that begin step floats
// apart, as a caller keeps them; n is a multiple of 16. k is one block, however long.
func (g *Matmul) GemmPanels(
	m, n, k int, alpha float32, a []float32, lda int, b []float32, step int, add bool, c []float32, ldc int,
) {
	if m == 0 || n == 0 || k == 0 {
		return
	}
	check("A", false, m, k, lda, len(a))
	check("B", false, n/tileCols, k*tileCols, step, len(b))
	check("C", false, m, n, ldc, len(c))
	checkColumns(0, n, n/tileCols*tileCols)
	p := product{m: m, alpha: alpha, a: a, lda: lda, c: c, ldc: ldc}
	g.block(&p, b, step, interval{0, k}, n, add)
}

func checkColumns(from, to, n int) {
	if from%tileCols != 0 || from < 0 || to > n || (to%tileCols != 0 && to != n) {
		panic(fmt.Sprintf("gemm: columns %d to %d of %d are no whole panels", from, to, n))
	}
}
