package exact

import (
	"math"
	"math/big"
)

// Limit bounds the numbers whose squares Moments can sum.
const Limit = 1e150

// Moments is the count, mean and variance of numbers; the zero value holds no numbers. Nothing is rounded before a
// moment is read, so equal numbers have a variance of exactly 0, and their mean is exactly that number.
type Moments struct {
	N            int
	sum, squares Sum
}

// Add adds a number of magnitude ≤ Limit.
func (m *Moments) Add(x float64) {
	m.N++
	m.sum.Add(x)
	m.squares.AddSquare(x)
}

// Merge adds another set of numbers.
func (m *Moments) Merge(o *Moments) {
	m.N += o.N
	m.sum.Merge(&o.sum)
	m.squares.Merge(&o.squares)
}

// Mean returns Σx/n, 0 of none.
func (m *Moments) Mean() float64 {
	if m.N == 0 {
		return 0
	}
	return ratio(m.sum.integer(), big.NewInt(int64(m.N)), lowest)
}

// Variance returns the population variance, 0 of fewer than two numbers.
func (m *Moments) Variance() float64 { return m.spread(m.N) }

// Deviation returns the sample standard deviation (n−1), 0 of fewer than two numbers.
func (m *Moments) Deviation() float64 { return math.Sqrt(m.spread(m.N - 1)) }

// spread is (n·Σx² − (Σx)²)/(n·divisor), without rounding up to the division.
func (m *Moments) spread(divisor int) float64 {
	if m.N < 2 {
		return 0
	}
	n, sum := big.NewInt(int64(m.N)), m.sum.integer()
	squares := new(big.Int).Mul(n, m.squares.integer())
	squares.Lsh(squares, -lowest) // to the scale of (Σx)²
	squares.Sub(squares, sum.Mul(sum, sum))
	if squares.Sign() < 0 {
		return 0 // squares below the least float64 were lost
	}
	return ratio(squares, n.Mul(n, big.NewInt(int64(divisor))), 2*lowest)
}

// ratio is (a/b)·2^exponent, rounded to 128 bits and then to a float64.
func ratio(a, b *big.Int, exponent int) float64 {
	q := new(big.Float).SetPrec(128).Quo(scaled(a, exponent), new(big.Float).SetInt(b))
	v, _ := q.Float64()
	return v
}
