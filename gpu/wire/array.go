package wire

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"
	"unsafe"
)

// Dtype is the type of an array's elements, by safetensors' name.
type Dtype string

// The types that messages use.
const (
	I32 Dtype = "I32"
	U64 Dtype = "U64"
	U8  Dtype = "U8"
	F32 Dtype = "F32"
)

// size is that of an element in bytes; 0 of a type that no message uses.
func (d Dtype) size() uint64 {
	switch d {
	case U64:
		return 8
	case I32, F32:
		return 4
	case U8:
		return 1
	}
	return 0
}

// Array is one named tensor with one dimension, which is all that messages use.
type Array struct {
	Name  string
	Dtype Dtype
	Len   int    // elements
	Raw   []byte // their bytes, little-endian
}

type element interface {
	~int32 | ~uint64 | ~uint8 | ~float32
}

// Of is an array over v's own memory, where this machine is little-endian.
func Of[T element](name string, v []T) Array {
	a := Array{Name: name, Dtype: dtypeOf[T](), Len: len(v)}
	if littleEndian {
		a.Raw = unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), uintptr(len(v))*unsafe.Sizeof(*new(T)))
		return a
	}
	a.Raw, _ = binary.Append(nil, binary.LittleEndian, v)
	return a
}

// Values is the array's content, over its own memory where that is aligned and this machine little-endian; the
// type must be the array's.
func Values[T element](a Array) ([]T, error) {
	if want := dtypeOf[T](); a.Dtype != want {
		return nil, broken("array %q holds %s, want %s", a.Name, a.Dtype, want)
	}
	if a.Len == 0 {
		return []T{}, nil
	}
	if at := unsafe.Pointer(unsafe.SliceData(a.Raw)); littleEndian && uintptr(at)%unsafe.Alignof(*new(T)) == 0 {
		return unsafe.Slice((*T)(at), a.Len), nil
	}
	out := make([]T, a.Len)
	if _, err := binary.Decode(a.Raw, binary.LittleEndian, out); err != nil {
		return nil, fmt.Errorf("read array %q: %w", a.Name, err)
	}
	return out, nil
}

func dtypeOf[T element]() Dtype {
	switch any(*new(T)).(type) {
	case int32:
		return I32
	case uint64:
		return U64
	case uint8:
		return U8
	}
	return F32
}

var littleEndian = binary.NativeEndian.Uint16([]byte{1, 0}) == 1

// aligned makes n bytes that begin at a multiple of 8.
func aligned(n uint64) []byte {
	words := make([]uint64, (n+7)/8)
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), n)
}

// Flatten puts ragged rows behind each other.
func Flatten[T any](rows [][]T) (flat []T, lengths []int32) {
	flat, lengths = slices.Concat(rows...), make([]int32, len(rows))
	for i, r := range rows {
		lengths[i] = int32(len(r))
	}
	return flat, lengths
}

// Cut gives the rows of a flat array, over its memory; the lengths must be ≥ 0 and add up to it.
func Cut[T any](flat []T, lengths []int32) ([][]T, error) {
	rows := make([][]T, len(lengths))
	var at uint64
	for i, n := range lengths {
		end, over := bits.Add64(at, uint64(n), 0)
		if n < 0 || over != 0 || end > uint64(len(flat)) {
			return nil, broken("row %d of %d elements from %d on in an array of %d", i, n, at, len(flat))
		}
		rows[i], at = flat[at:end:end], end
	}
	if at != uint64(len(flat)) {
		return nil, broken("lengths add up to %d for an array of %d", at, len(flat))
	}
	return rows, nil
}
