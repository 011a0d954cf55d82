package checkpoint

import "bytes"

// TensorLayout is one tensor as a file's header declares it.
type TensorLayout struct {
	Name  string
	Dtype string // F32, F16 or BF16
	Dims  []int
	Bytes int64
}

// Layout reads the header of a safetensors file and checks that its tensors tile the data. The tensors are in the order
// of their data. The errors are those of DecodeSafetensors.
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
	f, entries, begin, err := readHeader(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		return nil, nil, nil, err
	}
	return f, entries, b[begin:], nil
}
