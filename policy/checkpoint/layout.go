package checkpoint

import (
	"encoding/binary"
	"fmt"
)

// TensorLayout is one tensor as a file's header declares it.
type TensorLayout struct {
	Name  string
	Dtype string // F32, F16 or BF16
	Dims  []int
	Bytes int64
}

// Layout reads a safetensors file's header and checks that its tensors tile the data; the tensors
// are in the order of their data. It has DecodeSafetensors' errors.
func Layout(b []byte) ([]TensorLayout, map[string]string, error) {
	f, entries, _, err := open(b)
	if err != nil {
		return nil, nil, err
	}
	out := make([]TensorLayout, len(entries))
	for i, e := range entries {
		out[i] = TensorLayout{Name: e.name, Dtype: e.Dtype, Dims: e.dims, Bytes: int64(e.Offsets[1] - e.Offsets[0])}
	}
	return out, f.Metadata, nil
}

// open checks a file's header against its data; the entries are in the order of their data.
func open(b []byte) (f *File, entries []namedEntry, data []byte, err error) {
	if len(b) < 8 {
		return nil, nil, nil, fmt.Errorf("%w: %d bytes are too short for a safetensors header", ErrCorrupt, len(b))
	}
	n := binary.LittleEndian.Uint64(b)
	if n > maxHeader || n > uint64(len(b)-8) {
		return nil, nil, nil, fmt.Errorf("%w: header of %d bytes in a file of %d", ErrCorrupt, n, len(b))
	}
	f = &File{}
	if entries, err = f.header(b[8 : 8+n]); err != nil {
		return nil, nil, nil, err
	}
	data = b[8+n:]
	return f, entries, data, tile(entries, uint64(len(data)))
}
