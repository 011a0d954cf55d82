//go:build goexperiment.simd && amd64

package loss

import (
	"math/bits"
	"simd/archsimd"
)

// The loops over masks in wide registers, eight entries each.

func load8i(s []int32, i int) archsimd.Int32x8 {
	return archsimd.LoadInt32x8((*[8]int32)(s[i : i+8]))
}

func maskV(mask []int32) (sum, or int32) {
	var s, t, o archsimd.Int32x8
	n, i := len(mask), 0
	for ; i+16 <= n; i += 16 {
		a, b := load8i(mask, i), load8i(mask, i+8)
		s, t, o = s.Add(a), t.Add(b), o.Or(a.Or(b))
	}
	var ss, oo [8]int32
	s.Add(t).Store(&ss)
	o.Store(&oo)
	archsimd.ClearAVXUpperBits()
	for k := range ss {
		sum += ss[k]
		or |= oo[k]
	}
	for ; i < n; i++ {
		sum += mask[i]
		or |= mask[i]
	}
	return sum, or
}

// runV looks at 32 entries at a time, then at eight.
func runV(mask []int32, value int32) int {
	same := archsimd.BroadcastInt32x8(value)
	n, i := len(mask), 0
	for ; i+32 <= n; i += 32 {
		a, b := load8i(mask, i).Xor(same), load8i(mask, i+8).Xor(same)
		c, d := load8i(mask, i+16).Xor(same), load8i(mask, i+24).Xor(same)
		if !a.Or(b).Or(c.Or(d)).IsZero() {
			break
		}
	}
	for ; i+8 <= n; i += 8 {
		if equal := load8i(mask, i).Equal(same).ToBits(); equal != 0xff {
			archsimd.ClearAVXUpperBits()
			return i + bits.TrailingZeros8(^equal)
		}
	}
	archsimd.ClearAVXUpperBits()
	for i < n && mask[i] == value {
		i++
	}
	return i
}
