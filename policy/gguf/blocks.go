package gguf

import (
	"math"

	"github.com/ropewalk/ropewalk/policy/checkpoint"
)

// format is how a file holds numbers: in blocks of a fixed number of values.
type format struct {
	name   string
	values int // of a block
	bytes  int // of a block
	// read widens one block.
	read func(to []float32, block []byte)
}

// formats are ggml's numbers of the formats that are read.
//
// Source: the block structures of ggml (ggml-common.h). d and m are a block's scale and offset in half precision.
var formats = map[uint32]format{
	0: {"F32", 1, 4, func(to []float32, b []byte) { to[0] = math.Float32frombits(order.Uint32(b)) }},
	1: {"F16", 1, 2, func(to []float32, b []byte) { to[0] = half(b) }},
	30: {"BF16", 1, 2, func(to []float32, b []byte) {
		to[0] = math.Float32frombits(uint32(order.Uint16(b)) << 16)
	}},
	2:  {"Q4_0", 32, 18, readQ40},
	3:  {"Q4_1", 32, 20, readQ41},
	8:  {"Q8_0", 32, 34, readQ80},
	12: {"Q4_K", 256, 144, readQ4K},
	14: {"Q6_K", 256, 210, readQ6K},
}

// half widens a number in half precision.
func half(b []byte) float32 { return checkpoint.Half(order.Uint16(b)) }

// readQ40: d, then 32 values of 4 bits; x = d·(q − 8). A byte holds value i in its low and value i+16 in its high half.
func readQ40(to []float32, b []byte) {
	d := half(b)
	for i, q := range b[2:18] {
		to[i] = d * float32(int(q&15)-8)
		to[i+16] = d * float32(int(q>>4)-8)
	}
}

// readQ41: d, m, then values as in Q4_0; x = d·q + m.
func readQ41(to []float32, b []byte) {
	d, m := half(b), half(b[2:])
	for i, q := range b[4:20] {
		to[i] = d*float32(q&15) + m
		to[i+16] = d*float32(q>>4) + m
	}
}

// readQ80: d, then 32 signed bytes; x = d·q.
func readQ80(to []float32, b []byte) {
	d := half(b)
	for i, q := range b[2:34] {
		to[i] = float32(int8(q)) * d
	}
}

// readQ4K: d, dmin, the scales and minima of eight groups of 32 values in 6 bits each, then the values in 4 bits;
// x = d·scale·q − dmin·minimum. Of each 32 bytes of values the low halves are one group and the high halves the next.
func readQ4K(to []float32, b []byte) {
	d, dmin := half(b), half(b[2:])
	packed, values := b[4:16], b[16:144]
	for g := range 8 {
		var scale, minimum byte
		if g < 4 {
			scale, minimum = packed[g]&63, packed[g+4]&63
		} else {
			scale = packed[g+4]&15 | packed[g-4]>>6<<4
			minimum = packed[g+4]>>4 | packed[g]>>6<<4
		}
		factor, offset := d*float32(scale), dmin*float32(minimum)
		for i, q := range values[g/2*32 : g/2*32+32] {
			if g%2 == 1 {
				q >>= 4
			}
			to[g*32+i] = factor*float32(q&15) - offset
		}
	}
}

// readQ6K: the low 4 bits of 256 values, their high 2 bits, a signed scale for each 16 values, and d;
// x = d·scale·(q − 32). The values lie in two halves of 128, each in four groups of 32.
func readQ6K(to []float32, b []byte) {
	low, high, scales, d := b[:128], b[128:192], b[192:208], half(b[208:])
	for n := range 256 {
		part, group, i := n/128, n/32%4, n%32
		q := low[part*64+group%2*32+i]
		if group >= 2 {
			q >>= 4
		}
		bits := high[part*32+i] >> (2 * group) & 3
		to[n] = d * float32(int8(scales[n/16])) * float32(int(q&15|bits<<4)-32)
	}
}
