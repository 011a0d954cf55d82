package checkpoint

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// Every value of the two formats of 16 bits is written as itself, and numbers between two of them as the nearer one.
func TestNumbersAreRoundedToTheNearest(t *testing.T) {
	for dtype, narrow := range map[Dtype]func(float32) uint16{F16: toHalf, BF16: toBrain} {
		wide := func(h int) float32 {
			out := make([]float32, 1)
			widen(out, string(dtype), []byte{byte(h), byte(h >> 8)})
			return out[0]
		}
		for h := range 1 << 15 {
			v := wide(h)
			if v != v {
				require.NotEqual(t, wide(int(narrow(v))), wide(int(narrow(v))), "%s %04x stays no number", dtype, h)
				continue
			}
			require.EqualValues(t, h, narrow(v), "%s of %g", dtype, v)
			require.EqualValues(t, h|0x8000, narrow(-v), "%s of %g", dtype, -v)
			above := wide(h + 1)
			if math.IsInf(float64(v), 0) || math.IsInf(float64(above), 0) || above != above {
				continue
			}
			middle := float32((float64(v) + float64(above)) / 2)
			require.EqualValues(t, h+h&1, narrow(middle), "%s of %g, from the middle to the even one", dtype, middle)
			require.EqualValues(t, h, narrow(math.Nextafter32(middle, 0)), "%s below %g", dtype, middle)
			require.EqualValues(t, h+1, narrow(math.Nextafter32(middle, above)), "%s above %g", dtype, middle)
		}
	}
}

func TestNumbersOutOfRange(t *testing.T) {
	inf := float32(math.Inf(1))
	for _, c := range []struct {
		dtype Dtype
		v     float32
		ok    bool
	}{
		{F16, 65504, true}, {F16, 65519, true}, {F16, 65520, false}, {F16, -1e9, false}, {F16, inf, true},
		{BF16, 3.3e38, true}, {BF16, math.MaxFloat32, false}, {BF16, -inf, true}, {F32, math.MaxFloat32, true},
	} {
		_, err := c.dtype.Append(nil, []float32{1, c.v})
		if c.ok {
			require.NoError(t, err)
			continue
		}
		require.ErrorIs(t, err, ErrRange)
		require.ErrorContains(t, err, string(c.dtype))
	}
	_, err := Dtype("I8").Append(nil, nil)
	require.ErrorContains(t, err, `"I8": F32, F16 and BF16 are written`)
}
