package loss

import (
	"math"
	"testing"
)

// Both forms of exp against the library's over the whole range that losses use.
func TestExp(t *testing.T) {
	src, dst := make([]float64, BlockSize), make([]float64, BlockSize)
	for from := -300.0; from < 300; from += 1.37 {
		for k := range src {
			src[k] = from + float64(k)/97
		}
		expLoop(dst, src, expLimit)
		for k, x := range src {
			want := math.Exp(math.Min(x, expLimit))
			if math.Abs(dst[k]-want) > 1e-15*want {
				t.Fatalf("exp(%g) = %g, want %g", x, dst[k], want)
			}
			if one := fastExp(math.Min(x, expLimit)); math.Abs(one-want) > 1e-15*want {
				t.Fatalf("fastExp(%g) = %g, want %g", x, one, want)
			}
		}
	}
	if fastExp(0) != 1 {
		t.Errorf("fastExp(0) = %g", fastExp(0))
	}
}
