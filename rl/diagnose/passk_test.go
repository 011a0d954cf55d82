package diagnose

import (
	"errors"
	"math"
	"math/big"
	"testing"
)

// exactPassAtK is the formula in whole numbers.
func exactPassAtK(n, c, k int) float64 {
	miss := new(big.Rat).SetFrac(new(big.Int).Binomial(int64(n-c), int64(k)), new(big.Int).Binomial(int64(n), int64(k)))
	v, _ := new(big.Rat).Sub(big.NewRat(1, 1), miss).Float64()
	return v
}

func TestPassAtKAgreesWithBinomials(t *testing.T) {
	for _, n := range []int{1, 2, 3, 8, 16, 33, 200, 1024} {
		for c := 0; c <= n; c += 1 + n/20 {
			for k := 1; k <= n; k += 1 + n/20 {
				got, err := PassAtK(n, c, k)
				want := exactPassAtK(n, c, k)
				if err != nil || math.Abs(got-want) > 1e-12*want {
					t.Fatalf("pass@%d of %d/%d: %.17g (%v), want %.17g", k, c, n, got, err, want)
				}
			}
		}
	}
}

func TestPassAtKIsPreciseWhereItIsTiny(t *testing.T) {
	got, err := PassAtK(1e15, 1, 3)
	if err != nil || math.Abs(got-3e-15) > 1e-12*3e-15 {
		t.Fatalf("got %g (%v), want 3e-15", got, err)
	}
	if zero, err := PassAtK(8, 0, 4); err != nil || zero != 0 || math.Signbit(zero) {
		t.Fatalf("nothing solved gives %g (%v)", zero, err)
	}
}

func TestPassAtKRefuses(t *testing.T) {
	for _, bad := range [][3]int{{0, 0, 1}, {4, 5, 1}, {4, -1, 1}, {4, 1, 0}, {4, 1, 5}} {
		if _, err := PassAtK(bad[0], bad[1], bad[2]); !errors.Is(err, ErrBadInput) {
			t.Errorf("n, c, k = %v: %v", bad, err)
		}
	}
}
