package loss

import (
	"math"
	"testing"
)

// Both forms of exp against the library's over the whole range that losses use.
func TestExp(t *testing.T) {
	src, dst := make([]float64, BlockSize), make([]float64, BlockSize)
	forms := map[string]func(dst, src []float64, limit float64){"expLoop": expLoop, "plainExp": plainExp}
	for name, exp := range forms {
		for from := -310.0; from < 310; from += 1.37 {
			for k := range src {
				src[k] = from + float64(k)/97
			}
			exp(dst, src, expLimit)
			for k, x := range src {
				want := math.Exp(clamp(x, expLimit))
				if math.Abs(dst[k]-want) > 5e-16*want {
					t.Fatalf("%s(%g) = %g, want %g", name, x, dst[k], want)
				}
			}
		}
		exp(dst[:1], []float64{0, 0, 0, 0}[:1], expLimit)
		if dst[0] != 1 {
			t.Errorf("%s(0) = %g", name, dst[0])
		}
	}
}
