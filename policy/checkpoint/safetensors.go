package checkpoint

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/internal/badinput"
)

// A safetensors file is: the header's length N (uint64, little-endian), N bytes of JSON that map each
// tensor's name to {dtype, shape, data_offsets [begin, end) into the data}, and the data. The offsets of all
// tensors tile the data without gap or overlap. The optional entry __metadata__ maps strings to strings.

// maxHeader is the longest header that the format allows, in bytes.
const maxHeader = 100_000_000

type tensorEntry struct {
	Dtype   string    `json:"dtype"`
	Shape   []int64   `json:"shape"`
	Offsets [2]uint64 `json:"data_offsets"`
}

// File is a decoded safetensors file.
type File struct {
	Tensors  []Tensor // in the order of their data
	Metadata map[string]string
}

// Find returns the tensor of that name.
func (f *File) Find(name string) (Tensor, bool) {
	for _, t := range f.Tensors {
		if t.Name == name {
			return t, true
		}
	}
	return Tensor{}, false
}

var dtypeSize = map[string]uint64{"F32": 4, "F16": 2, "BF16": 2}

// DecodeSafetensors reads a file held in memory. F16 and BF16 are widened to float32; every size is
// checked before anything is sliced.
func DecodeSafetensors(b []byte) (*File, error) {
	f, entries, data, err := open(b)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		raw := data[e.Offsets[0]:e.Offsets[1]]
		numbers := make([]float32, uint64(len(raw))/dtypeSize[e.Dtype])
		widen(numbers, e.Dtype, raw)
		f.Tensors = append(f.Tensors, Tensor{Name: e.name, Dims: e.dims, Data: numbers})
	}
	return f, nil
}

type namedEntry struct {
	tensorEntry
	name string
	dims []int
}

func (f *File) header(b []byte) ([]namedEntry, error) {
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(b, &raw); err != nil {
		return nil, fmt.Errorf("%w: parse safetensors header: %w", ErrCorrupt, badinput.JSON(err))
	}
	var entries []namedEntry
	for name, msg := range raw {
		if name == "__metadata__" {
			if err := json.Unmarshal(msg, &f.Metadata); err != nil {
				return nil, fmt.Errorf("%w: parse __metadata__: %w", ErrCorrupt, badinput.JSON(err))
			}
			continue
		}
		e := namedEntry{name: name}
		if err := json.Unmarshal(msg, &e.tensorEntry); err != nil {
			return nil, fmt.Errorf("%w: parse entry %q: %w", ErrCorrupt, name, badinput.JSON(err))
		}
		entries = append(entries, e)
	}
	slices.SortFunc(entries, func(a, b namedEntry) int {
		return cmp.Or(slices.Compare(a.Offsets[:], b.Offsets[:]), strings.Compare(a.name, b.name))
	})
	return entries, nil
}

// tile checks that the entries, sorted by offset, cover size bytes exactly, each as long as its shape says.
func tile(entries []namedEntry, size uint64) error {
	var at uint64
	for i := range entries {
		e := &entries[i]
		width, ok := dtypeSize[e.Dtype]
		if !ok {
			return fmt.Errorf("%w: tensor %q has dtype %q; F32, F16 and BF16 are read", ErrUnsupported, e.name, e.Dtype)
		}
		count := uint64(1)
		for _, d := range e.Shape {
			if d < 0 || d > maxSide {
				return fmt.Errorf("%w: tensor %q has a side of %d", ErrCorrupt, e.name, d)
			}
			count *= uint64(d)
			if count > math.MaxInt64/8/maxSide {
				return fmt.Errorf("%w: tensor %q is too large", ErrCorrupt, e.name)
			}
			e.dims = append(e.dims, int(d))
		}
		if e.Offsets[0] != at || e.Offsets[1] < at || e.Offsets[1] > size || e.Offsets[1]-at != count*width {
			return fmt.Errorf("%w: tensor %q of %d×%d bytes lies at %v, expected to begin at %d in %d bytes of data",
				ErrCorrupt, e.name, count, width, e.Offsets, at, size)
		}
		at = e.Offsets[1]
	}
	if at != size {
		return fmt.Errorf("%w: tensors cover %d of %d bytes of data", ErrCorrupt, at, size)
	}
	return nil
}

// widen decodes as many numbers as out has.
func widen(out []float32, dtype string, raw []byte) {
	switch dtype {
	case "F32":
		for i := range out {
			out[i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
		}
	case "BF16":
		for i := range out {
			out[i] = math.Float32frombits(uint32(binary.LittleEndian.Uint16(raw[2*i:])) << 16)
		}
	case "F16":
		for i := range out {
			out[i] = Half(binary.LittleEndian.Uint16(raw[2*i:]))
		}
	}
}

// Half widens an IEEE 754 binary16.
func Half(h uint16) float32 {
	sign := uint32(h>>15) << 31
	exp, frac := uint32(h>>10)&31, uint32(h)&1023
	switch exp {
	case 0: // zero and subnormals: frac · 2⁻²⁴
		v := float32(frac) * (1.0 / (1 << 24))
		return math.Float32frombits(math.Float32bits(v) | sign)
	case 31:
		return math.Float32frombits(sign | 0xff<<23 | frac<<13)
	}
	return math.Float32frombits(sign | (exp+112)<<23 | frac<<13)
}

// EncodeSafetensors writes tensors as F32 in the order given. The header is padded with spaces to a
// multiple of 8 bytes, so that the data is aligned for readers that map the file.
func EncodeSafetensors(w io.Writer, tensors []Tensor, metadata map[string]string) error {
	return encodeAs(w, tensors, metadata, F32)
}

func encodeAs(w io.Writer, tensors []Tensor, metadata map[string]string, dtype Dtype) error {
	head := []byte{'{'}
	put := func(key string, v any) error {
		k, _ := json.Marshal(key)
		b, err := json.Marshal(v)
		if err != nil {
			return fmt.Errorf("encode safetensors header entry %q: %w", key, err)
		}
		if len(head) > 1 {
			head = append(head, ',')
		}
		head = append(append(append(head, k...), ':'), b...)
		return nil
	}
	if len(metadata) > 0 {
		if err := put("__metadata__", metadata); err != nil {
			return err
		}
	}
	var at uint64
	for _, t := range tensors {
		if t.stored == nil && t.Size() != len(t.Data) {
			return fmt.Errorf("encode tensor %q: %d numbers for dimensions %v", t.Name, len(t.Data), t.Dims)
		}
		size := uint64(dtype.Size()) * uint64(t.Size())
		e := tensorEntry{Dtype: string(dtype), Shape: []int64{}, Offsets: [2]uint64{at, at + size}}
		for _, d := range t.Dims {
			e.Shape = append(e.Shape, int64(d))
		}
		at = e.Offsets[1]
		if err := put(t.Name, e); err != nil {
			return err
		}
	}
	head = append(head, '}')
	for len(head)%8 != 0 {
		head = append(head, ' ')
	}
	if _, err := w.Write(append(binary.LittleEndian.AppendUint64(nil, uint64(len(head))), head...)); err != nil {
		return fmt.Errorf("write safetensors header: %w", err)
	}
	buf := make([]byte, 0, pieceBytes) // shared: a model has many small tensors
	for _, t := range tensors {
		if err := t.write(w, dtype, buf); err != nil {
			return err
		}
	}
	return nil
}
