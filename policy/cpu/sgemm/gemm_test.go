package sgemm

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

func randoms(seed uint64, n int) []float32 {
	r := rand.New(rand.NewPCG(seed, 1))
	out := make([]float32, n)
	for i := range out {
		out[i] = float32(r.NormFloat64())
	}
	return out
}

// matrix is rows×cols as op gives it, inside a larger array.
type matrix struct {
	data  []float32
	ld    int
	trans bool
}

func newMatrix(seed uint64, rows, cols int, trans bool) matrix {
	if trans {
		rows, cols = cols, rows
	}
	return matrix{data: randoms(seed, rows*(cols+3)), ld: cols + 3, trans: trans}
}

func (m matrix) at(i, j int) float64 {
	if m.trans {
		i, j = j, i
	}
	return float64(m.data[i*m.ld+j])
}

func requireAvailable(t testing.TB) {
	if !Available() {
		t.Skip("the processor has no AVX2")
	}
}

// TestGemm compares with the definition over sizes around every edge: tiles, panels, blocks, few and many rows.
func TestGemm(t *testing.T) {
	requireAvailable(t)
	var g Matmul
	sizes := [][3]int{
		{1, 1, 1}, {1, 4, 8}, {2, 5, 9}, {2, 70, 40}, {1, 40, 300}, {3, 7, 16}, {4, 3, 40}, {5, 64, 3}, {6, 16, 32},
		{7, 17, 33}, {13, 31, 257}, {48, 50, 24}, {49, 16, 8},
		{64, 57, 32}, {126, 48, 256}, {127, 33, 300}, {130, 1040, 20}, {260, 20, 520},
	}
	for _, s := range sizes {
		m, n, k := s[0], s[1], s[2]
		for bits := range 4 {
			a, b := newMatrix(1, m, k, bits&1 != 0), newMatrix(2, k, n, bits&2 != 0)
			for _, scale := range [][2]float32{{1, 0}, {1, 1}, {0.5, 1}, {-2, 0.25}} {
				c := newMatrix(3, m, n, false)
				was := append([]float32(nil), c.data...)
				g.Gemm(a.trans, b.trans, m, n, k, scale[0], a.data, a.ld, b.data, b.ld, scale[1], c.data, c.ld)
				for i := range m {
					for j := range c.ld {
						before := float64(was[i*c.ld+j])
						if j >= n {
							require.InDelta(t, before, c.data[i*c.ld+j], 0, "%v: beyond the row", s)
							continue
						}
						sum := 0.0
						for l := range k {
							sum += a.at(i, l) * b.at(l, j)
						}
						require.InDelta(
							t, float64(scale[0])*sum+float64(scale[1])*before, c.at(i, j), 1e-4,
							"%v, op %b, scale %v at %d, %d", s, bits, scale, i, j,
						)
					}
				}
			}
		}
	}
}

// TestElementsStandAlone: the bits of an element do not depend on the other rows and columns, or on whether B was
// packed before.
func TestElementsStandAlone(t *testing.T) {
	requireAvailable(t)
	for _, n := range []int{70, farFloats/300 + 20} {
		elementsStandAlone(t, 23, n, 300)
	}
}

func elementsStandAlone(t *testing.T, rows, n, k int) {
	var g Matmul
	x, w := randoms(1, rows*k), randoms(2, n*k)
	want := make([]float32, rows*n)
	for i := range rows {
		for j := range n {
			g.Gemm(false, true, 1, 1, k, 1, x[i*k:], k, w[j*k:], k, 0, want[i*n+j:], 1)
		}
	}
	memory := make([]float32, PackedSize(k, n))
	Pack(memory, w, n, k, 32, n)
	packed := Pack(memory, w, n, k, 0, 32)
	for m := 1; m <= rows; m++ {
		got := make([]float32, m*n)
		g.Gemm(false, true, m, n, k, 1, x, k, w, k, 0, got, n)
		require.Equal(t, want[:m*n], got, "%d rows", m)
		clear(got)
		g.GemmPacked(m, x, k, packed, 48, n, false, got, n)
		g.GemmPacked(m, x, k, packed, 0, 48, true, got, n)
		require.Equal(t, want[:m*n], got, "%d rows, packed", m)
	}
	require.Panics(t, func() { g.GemmPacked(2, x, k, packed, 8, n, false, make([]float32, 2*n), n) }, "half a panel")
}

func TestGemmChecksMemory(t *testing.T) {
	var g Matmul
	full := make([]float32, 16)
	for name, call := range map[string]func(){
		"A":            func() { g.Gemm(false, false, 4, 4, 4, 1, full[:15], 4, full, 4, 0, full, 4) },
		"B":            func() { g.Gemm(false, true, 4, 4, 4, 1, full, 4, full[:15], 4, 0, full, 4) },
		"C":            func() { g.Gemm(false, false, 4, 4, 4, 1, full, 4, full, 4, 0, full[:15], 4) },
		"row distance": func() { g.Gemm(true, false, 2, 2, 4, 1, full, 1, full, 4, 0, full, 4) },
	} {
		require.Panics(t, call, name)
	}
	g.Gemm(false, false, 2, 0, 3, 1, nil, 3, nil, 1, 0, nil, 1)
	c := []float32{1, 2, 3, 4}
	g.Gemm(false, false, 2, 2, 0, 1, nil, 1, nil, 2, 0, c, 2)
	require.Equal(t, make([]float32, 4), c, "an empty sum is 0")
}

// BenchmarkGemm times the products of a decoder's layers: forward, both backward, attention, and generation.
func BenchmarkGemm(b *testing.B) {
	requireAvailable(b)
	for _, s := range []struct {
		m, n, k int
		ta, tb  bool
	}{
		{512, 512, 512, false, false}, {512, 1024, 256, false, true}, {512, 256, 768, false, true},
		{512, 256, 1024, false, false}, {1024, 256, 512, true, false}, {64, 256, 32, false, true},
		{64, 32, 256, false, false}, {256, 32, 64, true, false},
		{512, 64, 128, false, true}, {512, 64, 64, true, false},
		{512, 3072, 512, false, true}} {
		op := string("NT"[flag(s.ta)]) + string("NT"[flag(s.tb)])
		b.Run(fmt.Sprintf("%s/%dx%dx%d", op, s.m, s.n, s.k), func(b *testing.B) {
			var g Matmul
			x, y := newMatrix(1, s.m, s.k, s.ta), newMatrix(2, s.k, s.n, s.tb)
			c := make([]float32, s.m*s.n)
			for b.Loop() {
				g.Gemm(s.ta, s.tb, s.m, s.n, s.k, 1, x.data, x.ld, y.data, y.ld, 0, c, s.n)
			}
			b.ReportMetric(2*float64(s.m*s.n*s.k)*float64(b.N)/b.Elapsed().Seconds()*1e-9, "GFLOP/s")
		})
	}
}

// BenchmarkGemmPacked times products of few rows by weights that are packed already.
func BenchmarkGemmPacked(b *testing.B) {
	requireAvailable(b)
	for _, s := range [][3]int{{1, 3072, 512}, {4, 3072, 512}, {8, 3072, 512}, {16, 1024, 256}, {32, 1024, 256},
		{32, 192, 64}, {8, 16384, 1024}} {
		m, n, k := s[0], s[1], s[2]
		b.Run(fmt.Sprintf("%dx%dx%d", m, n, k), func(b *testing.B) {
			var g Matmul
			x, c := randoms(1, m*k), make([]float32, m*n)
			w := Pack(make([]float32, PackedSize(k, n)), randoms(2, n*k), n, k, 0, n)
			for b.Loop() {
				g.GemmPacked(m, x, k, w, 0, n, false, c, n)
			}
			b.ReportMetric(2*float64(m*n*k)*float64(b.N)/b.Elapsed().Seconds()*1e-9, "GFLOP/s")
		})
	}
}

func flag(b bool) int {
	if b {
		return 1
	}
	return 0
}
