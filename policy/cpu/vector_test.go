package cpu

import (
	"iter"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/policy/checkpoint"
	"github.com/ropewalk/ropewalk/rl/optimizer"
)

func normals(seed uint64, n int) []float32 {
	r := rand.New(rand.NewPCG(seed, 9))
	out := make([]float32, n)
	for i := range out {
		out[i] = float32(3 * r.NormFloat64())
	}
	return out
}

func widenAll(x []float32) []float64 {
	out := make([]float64, len(x))
	copyFloats(out, x)
	return out
}

// TestExp32 walks the range of arguments and compares with the exact exponential.
func TestExp32(t *testing.T) {
	worst := 0.0
	for x := float32(-86.9); x < 88; x += 0.00137 {
		want := math.Exp(float64(x))
		worst = max(worst, math.Abs(float64(exp32(x))-want)/want)
	}
	require.Less(t, worst, 1.5e-7)
	require.Zero(t, exp32(-100))
	require.Zero(t, exp32(float32(math.Inf(-1))))
	require.EqualValues(t, 1, exp32(0))
	require.False(t, math.IsInf(float64(exp32(1000)), 0))
	require.True(t, math.IsNaN(float64(exp32(float32(math.NaN())))))
}

// TestLoops holds the float32 loops, fast or plain, against the float64 ones at every length, so that tails
// shorter than a register are covered.
func TestLoops(t *testing.T) {
	near := func(t *testing.T, want []float64, got []float32) {
		t.Helper()
		for i := range want {
			require.InDelta(t, want[i], got[i], 4e-5*(1+math.Abs(want[i])))
		}
	}
	for n := range lengths() {
		a, b, c, d, e := normals(1, n), normals(2, n), normals(3, n), normals(4, n), normals(5, n)
		A, B, C, D, E := widenAll(a), widenAll(b), widenAll(c), widenAll(d), widenAll(e)
		near(t, []float64{dot(A, B), dot3(A, B, C), maxOf(A), sumSquares(A)},
			[]float32{dot(a, b), dot3(a, b, c), maxOf(a), float32(sumSquares(a))})
		scaleMul(A, B, C, 0.3)
		scaleMul(a, b, c, 0.3)
		near(t, A, a)
		normBackRow(A, B, C, D, E, 0.5, 0.2)
		normBackRow(a, b, c, d, e, 0.5, 0.2)
		near(t, A, a)
		near(t, B, b)
		addTo(A, B)
		addTo(a, b)
		axpy(A, C, 0.1)
		axpy(a, c, 0.1)
		scale(A, 0.7)
		scale(a, 0.7)
		mulShifted(A, D, 0.4)
		mulShifted(a, d, 0.4)
		near(t, A, a)
		near(t, []float64{expSum(B, 2)}, []float32{expSum(b, 2)})
		near(t, B, b)
		swiglu(A, C, D)
		swiglu(a, c, d)
		near(t, A, a)
		swigluBack(A, B, E, normalsWide(6, n), C, D)
		swigluBack(a, b, e, normals(6, n), c, d)
		near(t, A, a)
		near(t, B, b)
		near(t, E, e)
		m := maxOf(C)
		s64, w64 := temper(C, D, m, 0.8)
		s32, w32 := temper(c, d, float32(m), 0.8)
		near(t, []float64{s64, w64}, []float32{float32(s32), float32(w32)})
		near(t, D, d)
		affineMul(C, D, 0.2, -0.3)
		affineMul(c, d, 0.2, -0.3)
		near(t, C, c)
	}
}

// lengths are all short ones and some that span several blocks.
func lengths() iter.Seq[int] {
	return func(yield func(int) bool) {
		for n := 1; n < 90; n++ {
			if !yield(n) {
				return
			}
		}
		yield(330)
	}
}

func normalsWide(seed uint64, n int) []float64 { return widenAll(normals(seed, n)) }

func TestRotateTurnsBack(t *testing.T) {
	for _, half := range []int{3, 8, 16, 21} {
		shape := checkpoint.Shape{HeadDim: 2 * half, RopeTheta: 10000}
		r := rope[float32]{dim: 2 * half}
		r.perPosition, r.factor = shape.RopeFrequencies()
		r.grow(7)
		cos, sin := r.at(6)
		x := normals(1, 2*half)
		y := append([]float32(nil), x...)
		rotate(y, cos, sin, 1)
		require.InDelta(t, float64(x[0])*math.Cos(6)-float64(x[half])*math.Sin(6), y[0], 1e-5)
		rotate(y, cos, sin, -1)
		for i := range x {
			require.InDelta(t, x[i], y[i], 1e-5)
		}
	}
}

func TestAdamLoop(t *testing.T) {
	for n := 1; n < 20; n++ {
		w, m, v, g := normals(1, n), normals(2, n), normals(3, n), normals(4, n)
		for i := range v {
			v[i] *= v[i]
		}
		W, M, V, G := widenAll(w), widenAll(m), widenAll(v), widenAll(g)
		rule, step := optimizer.AdamW{Beta1: 0.9, Beta2: 0.99, Epsilon: 1e-3, WeightDecay: 0.5},
			optimizer.Step{LR: 0.1, Number: 3, Scale: 0.9}
		kernelOf[float32](rule, step)(w, g, [][]float32{m, v}, true)
		kernelOf[float64](rule, step)(W, G, [][]float64{M, V}, true)
		for i := range w {
			require.InDelta(t, W[i], w[i], 1e-5*(1+math.Abs(W[i])))
			require.InDelta(t, M[i], m[i], 1e-5)
			require.InDelta(t, V[i], v[i], 1e-4)
			require.Zero(t, g[i])
		}
	}
}

// BenchmarkLoops times the loops at the widths of a small policy.
func BenchmarkLoops(b *testing.B) {
	x, y, z := normals(1, 512), normals(2, 512), normals(3, 512)
	p, q, h := normals(4, 512), normals(5, 512), normals(6, 512)
	for name, f := range map[string]func(){
		"dot128":        func() { dot(x[:128], y[:128]) },
		"dot32":         func() { dot(x[:32], y[:32]) },
		"scaleMul128":   func() { scaleMul(h[:128], x[:128], y[:128], 1) },
		"normBack128":   func() { normBackRow(h[:128], p[:128], x[:128], y[:128], z[:128], 1, 1) },
		"expSum40":      func() { expSum(q[:40], 0); q[0] = 1 },
		"swiglu256":     func() { swiglu(h[:256], x[:256], y[:256]) },
		"swigluBack256": func() { swigluBack(h[:256], p[:256], q[:256], x[:256], y[:256], z[:256]) },
		"temper330":     func() { temper(q[:330], p[:330], 0, 1) },
		"rotate32":      func() { rotate(h[:32], x[:16], y[:16], 1) },
		"sumSquares512": func() { sumSquares(x) },
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				f()
			}
		})
	}
}
