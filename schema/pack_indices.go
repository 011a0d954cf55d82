package schema

import (
	"encoding/binary"
	"math/bits"
	"slices"

	"github.com/parquet-go/parquet-go/encoding/rle"
)

// widestFast is the width in bits of the widest indices that are packed here; the library packs wider ones.
const widestFast = 16

// indexRun is how many indices are packed together, and how many equal ones make a run.
const indexRun = 8

// appendIndices appends the indices of a dictionary in Parquet's RLE and bit-packing hybrid, after their width. The
// bytes are those of the library's encoding, which packs at a third of the speed: indices in runs of eight equal ones
// are written as a count and a value, and all others are packed.
func appendIndices(dst []byte, indices []int32) ([]byte, error) {
	var all int32
	for _, v := range indices {
		all |= v
	}
	width := bits.Len32(uint32(all))
	if width == 0 || width > widestFast {
		return appended(dst, func(dst []byte) ([]byte, error) {
			return new(rle.DictionaryEncoding).EncodeInt32(dst, indices)
		})
	}
	dst = append(dst, byte(width))
	packed := len(indices) / indexRun
	group := func(i int) *[indexRun]int32 { return (*[indexRun]int32)(indices[i*indexRun:]) }
	for i := 0; i < packed; {
		start := i
		if first := group(i); halves(first) && first[0] == first[4] {
			for i++; i < packed && *group(i) == *first; i++ {
			}
			dst = appendIndexRun(dst, (i-start)*indexRun, first[0], width)
			continue
		}
		for i++; i < packed && !halves(group(i)); i++ {
		}
		dst = appendPacked(dst, indices[start*indexRun:i*indexRun], width)
	}
	rest := indices[packed*indexRun:]
	for i := 0; i < len(rest); {
		start := i
		for i < len(rest) && rest[i] == rest[start] {
			i++
		}
		dst = appendIndexRun(dst, i-start, rest[start], width)
	}
	return dst, nil
}

// halves reports whether each half of a group holds one index. The library's loop for AVX2 ends packed indices there,
// and so do all files, whatever the processor.
func halves(g *[indexRun]int32) bool {
	return (g[1]^g[0])|(g[2]^g[0])|(g[3]^g[0])|(g[5]^g[4])|(g[6]^g[4])|(g[7]^g[4]) == 0
}

// appendIndexRun appends n times one index.
func appendIndexRun(dst []byte, n int, index int32, width int) []byte {
	dst = append(binary.AppendUvarint(dst, uint64(n)<<1), byte(index))
	if width > 8 {
		dst = append(dst, byte(index>>8))
	}
	return dst
}

// appendPacked appends groups of eight indices, of width bits each and the first in the lowest bits.
func appendPacked(dst []byte, indices []int32, width int) []byte {
	groups := len(indices) / indexRun
	dst = binary.AppendUvarint(dst, uint64(groups)<<1|1)
	size := len(dst) + groups*width
	dst = slices.Grow(dst, groups*width+16)[:size+16] // the last group is written as 16 bytes too
	w := uint(width)
	for i, at := 0, size-groups*width; i < len(indices); i, at = i+indexRun, at+width {
		g := (*[indexRun]int32)(indices[i:])
		low := uint64(g[0]) | uint64(g[1])<<w | uint64(g[2])<<(2*w) | uint64(g[3])<<(3*w)
		high := uint64(g[4]) | uint64(g[5])<<w | uint64(g[6])<<(2*w) | uint64(g[7])<<(3*w)
		to := (*[16]byte)(dst[at:])
		binary.LittleEndian.PutUint64(to[:8], low|high<<(4*w))
		binary.LittleEndian.PutUint64(to[8:], high>>(64-4*w))
	}
	return dst[:size]
}
