package cpu

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// requireGradient compares grad with central differences of f at every element of x: relative L2 error ≤ 1e-6.
func requireGradient(t *testing.T, what string, x, grad []float64, f func() float64) {
	t.Helper()
	const step = 1e-5
	var diff, norm float64
	for i := range x {
		was := x[i]
		x[i] = was + step
		up := f()
		x[i] = was - step
		down := f()
		x[i] = was
		want := (up - down) / (2 * step)
		diff += (want - grad[i]) * (want - grad[i])
		norm += want * want
	}
	require.Positive(t, norm, what)
	require.LessOrEqual(t, math.Sqrt(diff/norm), 1e-6, what)
}

func TestGradientOfRMSNorm(t *testing.T) {
	x, w, c := normalsWide(1, 30), normalsWide(2, 10), normalsWide(3, 30)
	f := func() float64 {
		y := make([]float64, len(x))
		rmsNorm(y, x, w, 1e-6)
		return dot(y, c)
	}
	dx, dw := make([]float64, len(x)), make([]float64, len(w))
	rmsNormBack(dx, dw, c, x, w, 1e-6)
	requireGradient(t, "input", x, dx, f)
	requireGradient(t, "weight", w, dw, f)
}

func TestGradientOfRotatedHeads(t *testing.T) {
	r := rope[float64]{dim: 8, perPosition: []float64{1, 0.3, 0.1, 0.03}, factor: 1.2}
	r.grow(12)
	x, w, c := normalsWide(1, 24), normalsWide(2, 8), normalsWide(3, 24)
	t.Run("not normed", func(t *testing.T) {
		dx := make([]float64, len(x))
		r.headsBack(dx, nil, append([]float64(nil), c...), x, nil, 11, 1e-6)
		requireGradient(t, "input", x, dx, func() float64 {
			y := make([]float64, len(x))
			r.heads(y, x, nil, 11, 1e-6)
			return dot(y, c)
		})
	})
	f := func() float64 {
		y := make([]float64, len(x))
		r.heads(y, x, w, 11, 1e-6)
		return dot(y, c)
	}
	dx, dw := make([]float64, len(x)), make([]float64, len(w))
	r.headsBack(dx, dw, append([]float64(nil), c...), x, w, 11, 1e-6)
	requireGradient(t, "input", x, dx, f)
	requireGradient(t, "weight", w, dw, f)
}

func TestGradientOfSwiGLU(t *testing.T) {
	gu, c := normalsWide(1, 40), normalsWide(2, 20)
	f := func() float64 {
		h := make([]float64, 20)
		swigluRows(h, gu, 10)
		return dot(h, c)
	}
	dgu, h, again := make([]float64, 40), make([]float64, 20), make([]float64, 20)
	swigluRowsBack(dgu, h, c, gu, 10)
	requireGradient(t, "gate and up", gu, dgu, f)
	swigluRows(again, gu, 10)
	require.InDeltaSlice(t, again, h, 1e-12)
}

// TestGradientOfAttention spans two blocks of rows, with two query heads per key head.
func TestGradientOfAttention(t *testing.T) {
	const n = attentionBlock + 5
	d := dims{Q: 12, K: 6, D: 3}
	a := newAttention[float64](gonumMatmul[float64]{}, d, d.K)
	q, k, v, c := normalsWide(1, n*d.Q), normalsWide(2, n*d.K), normalsWide(3, n*d.K), normalsWide(4, n*d.Q)
	out, lse := make([]float64, n*d.Q), make([]float64, n*a.heads)
	p, dp := make([]float64, attentionBlock*n), make([]float64, attentionBlock*n)
	f := func() float64 {
		a.forward(out, lse, q, k, v, p, 0, n)
		return dot(out, c)
	}
	f()
	dq, dk, dv := make([]float64, len(q)), make([]float64, len(k)), make([]float64, len(v))
	a.backward(dq, dk, dv, c, out, lse, q, k, v, p, dp, 0, n)
	requireGradient(t, "queries", q, dq, f)
	requireGradient(t, "keys", k, dk, f)
	requireGradient(t, "values", v, dv, f)
}

// TestAttentionAgainstDefinition compares with the sum written out.
func TestAttentionAgainstDefinition(t *testing.T) {
	const n = attentionBlock + 9
	d := dims{Q: 16, K: 8, D: 8}
	for _, blas := range libraries(t) {
		lib, err := chooseLibrary(blas)
		require.NoError(t, err)
		a := newAttention(newMatmul[float32](lib), d, d.K)
		q, k, v := normals(1, n*d.Q), normals(2, n*d.K), normals(3, n*d.K)
		out, lse := make([]float32, n*d.Q), make([]float32, n*a.heads)
		a.forward(out, lse, q, k, v, make([]float32, attentionBlock*n), 0, n)
		w := &worker[float32]{mm: newMatmul[float32](lib)}
		for row := range n {
			want := attentionRow(d, q[row*d.Q:(row+1)*d.Q], k, v, row+1)
			got := out[row*d.Q : (row+1)*d.Q]
			// The cached form must give the same.
			whole := region{0, roundUp(row + 1)}
			var memory []float32
			c := newCaches(&memory, 2, whole.room, d, w.mm)[1]
			cached := make([]float32, d.Q)
			for at := range row + 1 {
				qkv := make([]float32, d.Q+2*d.K)
				copy(qkv[d.Q+d.K:], v[at*d.K:(at+1)*d.K])
				c.store(whole, at, k[at*d.K:(at+1)*d.K], qkv, d)
			}
			c.attend(w, cached, q[row*d.Q:(row+1)*d.Q], whole, row+1, d)
			for i := range want {
				require.InDelta(t, want[i], got[i], 2e-5)
				require.InDelta(t, want[i], cached[i], 2e-5)
			}
		}
	}
}

func attentionRow(d dims, q, k, v []float32, n int) []float64 {
	out := make([]float64, d.Q)
	for h := range d.Q / d.D {
		key := h / (d.Q / d.K) * d.D
		var total float64
		for t := range n {
			var s float64
			for i := range d.D {
				s += float64(q[h*d.D+i]) * float64(k[t*d.K+key+i])
			}
			e := math.Exp(s / math.Sqrt(float64(d.D)))
			total += e
			for i := range d.D {
				out[h*d.D+i] += e * float64(v[t*d.K+key+i])
			}
		}
		for i := range d.D {
			out[h*d.D+i] /= total
		}
	}
	return out
}

func TestGradientOfOutputs(t *testing.T) {
	z, e := normalsWide(1, 15), make([]float64, 15)
	const y, temperature, glp, gent = 4, 0.6, 0.8, -1.3
	f := func() float64 {
		c := append([]float64(nil), z...)
		d := distribute(c, e, temperature)
		return glp*(c[y]-d.logSum) + gent*d.entropy
	}
	g := append([]float64(nil), z...)
	logitsBack(g, e, y, temperature, glp, gent)
	requireGradient(t, "logits", z, g, f)
}

// TestDealIsFixed: shares depend on the costs alone, keep the order, and are near equal.
func TestDealIsFixed(t *testing.T) {
	rows := func(parts int, lengths ...int) (out [][]int) {
		for _, all := range assignFamilies(families(randomSequences(1, 9, lengths...), nil), parts) {
			var of []int
			for _, f := range all {
				of = append(of, f.rows...)
			}
			out = append(out, of)
		}
		return out
	}
	require.Equal(t, [][]int{{0, 1}, {2, 3}}, rows(2, 5, 5, 5, 5))
	require.Equal(t, [][]int{{0}, {1, 2, 3}}, rows(2, 30, 10, 10, 10))
	require.Equal(t, [][]int{nil, nil}, rows(2))
	require.Len(t, rows(3, 0, 0), 3)
}

// TestMatmul compares every flag combination of both libraries with the definition, on windows of larger arrays.
func TestMatmul(t *testing.T) {
	const m, n, k, lda, ldb, ldc = 5, 7, 3, 9, 8, 11
	for _, blas := range libraries(t) {
		lib, err := chooseLibrary(blas)
		require.NoError(t, err)
		mm := newMatmul[float64](lib)
		for _, ta := range []bool{false, true} {
			for _, tb := range []bool{false, true} {
				a, b, c := normalsWide(1, 9*lda), normalsWide(2, 9*ldb), normalsWide(3, m*ldc)
				want := append([]float64(nil), c...)
				at := func(x []float64, trans bool, i, j, ld int) float64 {
					if trans {
						i, j = j, i
					}
					return x[i*ld+j]
				}
				for i := range m {
					for j := range n {
						var s float64
						for l := range k {
							s += at(a, ta, i, l, lda) * at(b, tb, l, j, ldb)
						}
						want[i*ldc+j] = 0.5*s + 2*want[i*ldc+j]
					}
				}
				mm.gemm(ta, tb, m, n, k, 0.5, a, lda, b, ldb, 2, c, ldc)
				require.InDeltaSlice(t, want, c, 1e-12)
			}
		}
		require.Panics(t, func() {
			mm.gemm(false, false, 4, 4, 4, 1, make([]float64, 15), 4, make([]float64, 16), 4, 0, make([]float64, 16), 4)
		})
	}
	_, err := chooseLibrary("mkl")
	require.Error(t, err)
}
