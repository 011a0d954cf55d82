package cpu

import "math"

// attentionBlock is the number of query rows that are computed at once. A block computes scores only up to its last
// row, which skips most masked scores, and needs scratch memory of only block × length.
const attentionBlock = 64

// heads describes the layout of one sequence's attention: rows are tokens, heads are stored side by side.
type attention[T float] struct {
	mm            matmul[T]
	dim           int // D
	heads, shared int // query heads, and query heads per key head
	qw, kw, vw    int // row distances of q (and the output), of k, and of v
	scale         T   // 1/√D
}

func (d dims) attention() (heads, shared int) { return d.Q / d.D, d.Q / d.K }

func newAttention[T float](mm matmul[T], d dims, vw int) attention[T] {
	h, s := d.attention()
	return attention[T]{
		mm: mm, dim: d.D, heads: h, shared: s, qw: d.Q, kw: d.K, vw: vw, scale: T(1 / math.Sqrt(float64(d.D))),
	}
}

// forward writes out = softmax(q·kᵀ/√D)·v per head for the rows from…n of one causal sequence, and the log-sum-exp of
// each scaled score row to lse ([n−from][heads]). out, lse and q begin at row from, k and v at row 0. p is scratch of
// attentionBlock × n.
func (a *attention[T]) forward(out, lse, q, k, v, p []T, from, n int) {
	for h := range a.heads {
		qo, ko := h*a.dim, h/a.shared*a.dim
		for lo := from; lo < n; lo += attentionBlock {
			hi := min(lo+attentionBlock, n)
			rows, at := hi-lo, (lo-from)*a.qw+qo
			a.mm.gemm(false, true, rows, hi, a.dim, a.scale, q[at:], a.qw, k[ko:], a.kw, 0, p, hi)
			for i := range rows {
				lse[(lo-from+i)*a.heads+h] = softmaxRow(p[i*hi:(i+1)*hi], lo+i+1)
			}
			a.mm.gemm(false, false, rows, a.dim, hi, 1, p, hi, v[ko:], a.vw, 0, out[at:], a.qw)
		}
	}
}

// softmaxRow turns the first n scores of a row into probabilities, the rest into 0, and returns the
// log-sum-exp of the n scores.
func softmaxRow[T float](row []T, n int) T {
	m := maxOf(row[:n])
	s := expSum(row[:n], m)
	scale(row[:n], 1/s)
	clear(row[n:])
	return m + T(math.Log(float64(s)))
}

// backward adds to dk and dv and writes dq for a given dout of the rows from…n. dq and dout begin at row from, as those
// of forward do, dk and dv at row 0. p and dp are scratch of attentionBlock × n each.
// With P the probabilities: dV = Pᵀ·dO, dP = dO·Vᵀ, dS = P·(dP − rowsum(dO·O)), dQ = dS·K/√D, dK = dSᵀ·Q/√D.
func (a *attention[T]) backward(dq, dk, dv, dout, out, lse, q, k, v, p, dp []T, from, n int) {
	for h := range a.heads {
		qo, ko := h*a.dim, h/a.shared*a.dim
		for lo := from; lo < n; lo += attentionBlock {
			hi := min(lo+attentionBlock, n)
			rows, at := hi-lo, (lo-from)*a.qw+qo
			a.mm.gemm(false, true, rows, hi, a.dim, a.scale, q[at:], a.qw, k[ko:], a.kw, 0, p, hi)
			a.mm.gemm(false, true, rows, hi, a.dim, 1, dout[at:], a.qw, v[ko:], a.vw, 0, dp, hi)
			for i := range rows {
				t := lo - from + i
				o := t*a.qw + qo
				delta := dot(dout[o:o+a.dim], out[o:o+a.dim])
				softmaxRowBack(p[i*hi:(i+1)*hi], dp[i*hi:(i+1)*hi], lo+i+1, lse[t*a.heads+h], delta)
			}
			a.mm.gemm(true, false, hi, a.dim, rows, 1, p, hi, dout[at:], a.qw, 1, dv[ko:], a.vw)
			a.mm.gemm(false, false, rows, a.dim, hi, a.scale, dp, hi, k[ko:], a.kw, 0, dq[at:], a.qw)
			a.mm.gemm(true, false, hi, a.dim, rows, a.scale, dp, hi, q[at:], a.qw, 1, dk[ko:], a.kw)
		}
	}
}

// softmaxRowBack turns the first n scores into probabilities again and dp into the scores' gradient.
func softmaxRowBack[T float](p, dp []T, n int, lse, delta T) {
	expSum(p[:n], lse)
	clear(p[n:])
	mulShifted(dp[:n], p[:n], delta)
	clear(dp[n:])
}
