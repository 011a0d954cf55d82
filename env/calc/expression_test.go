package calc

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

func TestApplyAgreesWithBigIntegers(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	edges := []int64{0, 1, -1, 2, -2, 9, math.MaxInt64, math.MinInt64, math.MinInt64 + 1, 1 << 32, -(1 << 32)}
	draw := func() int64 {
		switch rng.IntN(3) {
		case 0:
			return edges[rng.IntN(len(edges))]
		case 1:
			return rng.Int64N(2001) - 1000
		}
		return int64(rng.Uint64())
	}
	for range 20000 {
		op, a, b := operator(rng.IntN(operators)), draw(), draw()
		got, err := apply(op, a, b)
		want, ok := bigApply(op, a, b)
		if (err == nil) != ok || (ok && got != want) {
			// a = MinInt64 with a divisor is refused though most quotients exist: out of range anyway.
			if a == math.MinInt64 && op >= opExact && err != nil {
				continue
			}
			if b == math.MinInt64 && op == opSub && err != nil {
				continue
			}
			t.Fatalf("%d %s %d = %d (%v), want %d (%v)", a, op.python(), b, got, err, want, ok)
		}
	}
}

// bigApply is Python's arithmetic. ok is false if the operation has no result or the result does not fit in 64 bits.
func bigApply(op operator, a, b int64) (int64, bool) {
	x, y, z := big.NewInt(a), big.NewInt(b), new(big.Int)
	switch op {
	case opAdd:
		z.Add(x, y)
	case opSub:
		z.Sub(x, y)
	case opMul:
		z.Mul(x, y)
	default:
		if b == 0 {
			return 0, false
		}
		q, m := new(big.Int).DivMod(x, y, new(big.Int)) // Euclidean: 0 ≤ m
		if b < 0 && m.Sign() != 0 {
			q.Sub(q, big.NewInt(1))
			m.Add(m, y)
		}
		if op == opExact && m.Sign() != 0 {
			return 0, false
		}
		if z = q; op == opMod {
			z = m
		}
	}
	return z.Int64(), z.IsInt64()
}

func TestParse(t *testing.T) {
	for source, want := range map[string]int64{
		"7": 7, "1+2*3": 7, "(1+2)*3": 9, "10-4-3": 3, "10-(4-3)": 9, "7//2*2": 6, "7//(2*2)": 1,
		"100%7%4": 2, "3-10//4": 1, "((5))": 5, "(3-10)//4": -2, "(3-10)%4": 1,
	} {
		n, err := parse(source)
		if err != nil {
			t.Errorf("parse %q: %v", source, err)
			continue
		}
		if got, err := n.eval(); err != nil || got != want {
			t.Errorf("%s = %d (%v), want %d", source, got, err, want)
		}
	}
	for _, source := range []string{"", "1+", "(1", "1)", "1 + 2", "01", "-1", "2**3", "1/2", "x", "1++2",
		"1234567890123456789"} {
		if n, err := parse(source); err == nil {
			t.Errorf("parse %q gave %s", source, n.python())
		}
	}
}

// A rendered expression parses back to the same value and the same source.
func TestCanonicalSourceRoundTrips(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	for range 3000 {
		n := randomTree(rng, 1+rng.IntN(6))
		source := n.python()
		back, err := parse(source)
		if err != nil {
			t.Fatal(err)
		}
		if back.python() != source {
			t.Fatalf("%s came back as %s", source, back.python())
		}
		a, errA := n.eval()
		b, errB := back.eval()
		if a != b || (errA == nil) != (errB == nil) {
			t.Fatalf("%s: %d (%v) before, %d (%v) after", source, a, errA, b, errB)
		}
	}
}

func randomTree(rng *rand.Rand, leaves int) *node {
	if leaves == 1 {
		return &node{value: rng.Int64N(50)}
	}
	left := 1 + rng.IntN(leaves-1)
	ops := []operator{opAdd, opSub, opMul, opFloor, opMod}
	return &node{left: randomTree(rng, left), op: ops[rng.IntN(len(ops))], right: randomTree(rng, leaves-left)}
}
