package exact

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

// wild draws finite numbers of every exponent and both signs.
func wild(rng *rand.Rand, n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		for {
			out[i] = math.Float64frombits(rng.Uint64())
			if !math.IsNaN(out[i]) && !math.IsInf(out[i], 0) {
				break
			}
		}
	}
	return out
}

// slow adds with arbitrary precision.
func slow(xs []float64) float64 {
	sum := new(big.Float).SetPrec(3000)
	for _, x := range xs {
		sum.Add(sum, new(big.Float).SetFloat64(x))
	}
	v, _ := sum.Float64()
	return v
}

func fast(xs []float64) *Sum {
	var s Sum
	for _, x := range xs {
		s.Add(x)
	}
	return &s
}

func TestSumAgreesWithArbitraryPrecision(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for trial := range 300 {
		xs := wild(rng, trial%40)
		if trial%3 == 0 { // what is added is taken away again, but for a little
			for _, x := range xs {
				xs = append(xs, -x)
			}
			xs = append(xs, math.Ldexp(rng.Float64(), -rng.IntN(1074)))
		}
		if got, want := fast(xs).Value(), slow(xs); got != want {
			t.Fatalf("trial %d: sum of %v is %g, want %g", trial, xs, got, want)
		}
	}
}

func TestSumOfHandWorkedTerms(t *testing.T) {
	tests := []struct {
		terms []float64
		want  float64
	}{
		{nil, 0},
		{[]float64{0.1, 0.2, 0.3}, 0.6},
		{[]float64{1, 1e100, 1, -1e100}, 2},
		{[]float64{math.MaxFloat64, math.MaxFloat64, -math.MaxFloat64}, math.MaxFloat64},
		{[]float64{math.MaxFloat64, math.MaxFloat64}, math.Inf(1)},
		{[]float64{-math.SmallestNonzeroFloat64, -math.SmallestNonzeroFloat64}, -2 * math.SmallestNonzeroFloat64},
		{[]float64{1, math.Ldexp(1, -53)}, 1},                                                   // a tie goes to even
		{[]float64{1, math.Ldexp(1, -53), math.SmallestNonzeroFloat64}, 1 + math.Ldexp(1, -52)}, // no tie
	}
	for _, tt := range tests {
		if got := fast(tt.terms).Value(); got != tt.want {
			t.Errorf("sum of %v is %g, want %g", tt.terms, got, tt.want)
		}
	}
}

func TestSumDependsOnNeitherOrderNorShards(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	xs := wild(rng, 500)
	want := fast(xs).Value()
	for range 20 {
		rng.Shuffle(len(xs), func(i, j int) { xs[i], xs[j] = xs[j], xs[i] })
		var total Sum
		for rest := xs; len(rest) > 0; {
			n := 1 + rng.IntN(len(rest))
			total.Merge(fast(rest[:n]))
			rest = rest[n:]
		}
		if got := total.Value(); got != want {
			t.Fatalf("shards give %g, one sum %g", got, want)
		}
	}
}

func TestSumOfManyEqualTermsCarries(t *testing.T) {
	s := fast([]float64{-1e16})
	s.pending = before - 2 // as after a billion additions: the next but one carries
	for range 5 {
		s.Add(0.5)
	}
	if got := s.Value(); got != -1e16+2 {
		t.Fatalf("got %g, want %g rounded to even", got, -1e16+2.5)
	}
}

func TestSumRefusesInfinity(t *testing.T) {
	for _, x := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%g was added", x)
				}
			}()
			fast([]float64{x})
		}()
	}
}

func TestMoments(t *testing.T) {
	tests := []struct {
		values                    []float64
		mean, variance, deviation float64
	}{
		{nil, 0, 0, 0},
		{[]float64{7}, 7, 0, 0},
		{[]float64{0.1, 0.1, 0.1}, 0.1, 0, 0},
		{[]float64{1, 0, 0, 1}, 0.5, 0.25, math.Sqrt(1.0 / 3)},
		{[]float64{1e9 + 1, 1e9 + 2, 1e9 + 3}, 1e9 + 2, 2.0 / 3, 1}, // no cancellation
		{[]float64{-1e149, 1e149}, 0, 1e298, math.Sqrt2 * 1e149},
	}
	for _, tt := range tests {
		var m, rest Moments
		for i, v := range tt.values {
			if i%2 == 0 {
				m.Add(v)
			} else {
				rest.Add(v)
			}
		}
		m.Merge(&rest)
		near := func(got, want float64) bool { return math.Abs(got-want) <= 1e-15*math.Abs(want) }
		if m.N != len(tt.values) || m.Mean() != tt.mean || !near(m.Variance(), tt.variance) ||
			!near(m.Deviation(), tt.deviation) {
			t.Errorf("moments of %v: %d, %g, %g, %g; want %g, %g, %g",
				tt.values, m.N, m.Mean(), m.Variance(), m.Deviation(), tt.mean, tt.variance, tt.deviation)
		}
	}
}

func TestMomentsOfEqualNumbersHaveNoVariance(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for range 200 {
		var m Moments
		x := rng.NormFloat64()
		for range 1 + rng.IntN(50) {
			m.Add(x)
		}
		if m.Variance() != 0 || m.Mean() != x {
			t.Fatalf("%d times %g: mean %g, variance %g", m.N, x, m.Mean(), m.Variance())
		}
	}
}

func BenchmarkSum(b *testing.B) {
	var s Sum
	b.ReportAllocs()
	for i := range b.N {
		s.Add(float64(i) * -0.37)
	}
}
