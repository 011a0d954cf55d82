package checkpoint

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
)

// Dtype is a number format of weights, as safetensors spells it.
type Dtype string

// The formats that weights are written in.
const (
	F32  Dtype = "F32"
	F16  Dtype = "F16"  // IEEE 754 binary16
	BF16 Dtype = "BF16" // the upper half of a float32
)

// Size is the number of bytes of one value.
func (d Dtype) Size() int { return int(dtypeSize[string(d)]) }

// ErrRange means that a number is too large for the format that it is written in.
var ErrRange = errors.New("number is out of the format's range")

// Append appends numbers in the format, rounded to the nearest value and from the middle to the even one. A finite
// number that would become infinite is an ErrRange.
func (d Dtype) Append(out []byte, numbers []float32) ([]byte, error) {
	switch d {
	case F32:
		for _, v := range numbers {
			out = binary.LittleEndian.AppendUint32(out, math.Float32bits(v))
		}
		return out, nil
	case F16, BF16:
	default:
		return out, fmt.Errorf("write numbers as %q: F32, F16 and BF16 are written", d)
	}
	narrow, infinite := toHalf, uint16(0x7c00)
	if d == BF16 {
		narrow, infinite = toBrain, 0x7f80
	}
	for _, v := range numbers {
		h := narrow(v)
		if h&0x7fff == infinite && !math.IsInf(float64(v), 0) {
			return out, fmt.Errorf("%w: %g as %s", ErrRange, v, d)
		}
		out = binary.LittleEndian.AppendUint16(out, h)
	}
	return out, nil
}

// toBrain rounds to bfloat16.
func toBrain(v float32) uint16 {
	bits := math.Float32bits(v)
	if v != v {
		return uint16(bits>>16) | 0x40 // stays no number when its lower bits are cut off
	}
	return uint16((bits + 0x7fff + bits>>16&1) >> 16)
}

// toHalf rounds to binary16.
func toHalf(v float32) uint16 {
	bits := math.Float32bits(v)
	sign, rest := uint16(bits>>16)&0x8000, bits&0x7fffffff
	switch {
	case rest > 0x7f800000: // not a number
		return sign | 0x7e00
	case rest >= 0x47800000: // 2¹⁶ and more
		return sign | 0x7c00
	case rest < 0x38800000: // below 2⁻¹⁴: a multiple of 2⁻²⁴
		return sign | uint16(math.RoundToEven(float64(math.Float32frombits(rest))*(1<<24)))
	}
	rest -= 112 << 23 // the exponent's bias: 127 − 15
	return sign | uint16((rest+0xfff+rest>>13&1)>>13)
}

// pieceBytes is the size of the pieces in which tensors are written.
const pieceBytes = 1 << 16

// Write writes the tensor's numbers as dtype, a small part at a time.
func (t Tensor) Write(w io.Writer, dtype Dtype) error {
	return t.write(w, dtype, make([]byte, 0, pieceBytes))
}

// write uses buf, an empty slice with room for pieceBytes.
func (t Tensor) write(w io.Writer, dtype Dtype, buf []byte) error {
	var failed error
	err := t.Read(func(_ int, numbers []float32) {
		for part := range slices.Chunk(numbers, pieceBytes/4) { // at most four bytes a number
			if failed != nil {
				return
			}
			if buf, failed = dtype.Append(buf[:0], part); failed == nil {
				_, failed = w.Write(buf)
			}
		}
	})
	if err := errors.Join(err, failed); err != nil {
		return fmt.Errorf("write tensor %q: %w", t.Name, err)
	}
	return nil
}
