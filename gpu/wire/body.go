package wire

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
)

// A body is a safetensors file: the table's length (uint64), the table, which maps each tensor's name to
// {dtype, shape, data_offsets [begin, end) into the data}, and the data, which the offsets tile.

// maxArrays is more than any message has.
const maxArrays = 16

type entry struct {
	Dtype   Dtype    `json:"dtype"`
	Shape   []uint64 `json:"shape"`
	Offsets []uint64 `json:"data_offsets"`
}

// layout is a body's table for arrays in their order, padded so that the data begins aligned, and the body's size.
func layout(arrays []Array) (table []byte, size uint64, err error) {
	if len(arrays) == 0 {
		return nil, 0, nil
	}
	table = append(table, "\x00\x00\x00\x00\x00\x00\x00\x00{"...)
	var at uint64
	for i, a := range arrays {
		if uint64(len(a.Raw)) != uint64(a.Len)*a.Dtype.size() || a.Dtype.size() == 0 {
			return nil, 0, broken("array %q: %d bytes for %d elements of %s", a.Name, len(a.Raw), a.Len, a.Dtype)
		}
		if i > 0 {
			table = append(table, ',')
		}
		name, err := json.Marshal(a.Name)
		if err != nil {
			return nil, 0, fmt.Errorf("encode the name of array %q: %w", a.Name, err)
		}
		table = append(append(table, name...), `:{"dtype":"`+string(a.Dtype)+`","shape":[`...)
		table = append(strconv.AppendInt(table, int64(a.Len), 10), `],"data_offsets":[`...)
		table = append(strconv.AppendUint(table, at, 10), ',')
		at += uint64(len(a.Raw))
		table = append(strconv.AppendUint(table, at, 10), `]}`...)
	}
	table = append(table, '}')
	for len(table)%8 != 0 {
		table = append(table, ' ')
	}
	binary.LittleEndian.PutUint64(table, uint64(len(table)-8))
	return table, uint64(len(table)) + at, nil
}

// arraysOf decodes a body; the arrays share its memory and come in the order of their data. No body has no arrays.
func arraysOf(b []byte) ([]Array, error) {
	if len(b) == 0 {
		return nil, nil
	}
	if len(b) < 8 {
		return nil, broken("%d bytes are too short for a body", len(b))
	}
	n := binary.LittleEndian.Uint64(b)
	if n > maxHeader || n > uint64(len(b)-8) {
		return nil, broken("a table of %d bytes in a body of %d", n, len(b))
	}
	var table map[string]entry
	if err := decodeObject(b[8:8+n], &table); err != nil {
		return nil, err
	}
	if len(table) > maxArrays {
		return nil, broken("%d arrays, allowed are %d", len(table), maxArrays)
	}
	return tile(table, b[8+n:])
}

// tile cuts the data by the table, which must cover it exactly.
func tile(table map[string]entry, data []byte) ([]Array, error) {
	arrays := make([]Array, 0, len(table))
	for name, e := range table {
		width := e.Dtype.size()
		if width == 0 || len(e.Shape) != 1 || len(e.Offsets) != 2 {
			return nil, broken(
				"array %q is %s %v at %v, want one dimension of I32, U64, U8 or F32", name, e.Dtype, e.Shape, e.Offsets,
			)
		}
		from, to, size := e.Offsets[0], e.Offsets[1], uint64(len(data))
		if from > to || to > size || e.Shape[0] > size || e.Shape[0]*width != to-from {
			return nil, broken(
				"array %q of %d elements of %s lies at %v in %d bytes of data", name, e.Shape[0], e.Dtype, e.Offsets,
				size,
			)
		}
		arrays = append(arrays, Array{Name: name, Dtype: e.Dtype, Len: int(e.Shape[0]), Raw: data[from:to:to]})
	}
	begin := func(a Array) uint64 { return table[a.Name].Offsets[0] }
	slices.SortFunc(arrays, func(a, b Array) int {
		// An empty array lies before the one that begins where it ends.
		return cmp.Or(cmp.Compare(begin(a), begin(b)), cmp.Compare(a.Len, b.Len), cmp.Compare(a.Name, b.Name))
	})
	var at uint64
	for _, a := range arrays {
		if begin(a) != at {
			return nil, broken("array %q begins at %d, expected at %d", a.Name, begin(a), at)
		}
		at += uint64(len(a.Raw))
	}
	if at != uint64(len(data)) {
		return nil, broken("arrays cover %d of %d bytes of data", at, len(data))
	}
	return arrays, nil
}

// Want names an array that a message has.
type Want struct {
	Name  string
	Dtype Dtype
	Len   int // -1: any
}

// Take decodes a body that must hold exactly the arrays wanted, and gives them in that order.
func Take(body []byte, wanted ...Want) ([]Array, error) {
	arrays, err := arraysOf(body)
	if err != nil {
		return nil, err
	}
	out := make([]Array, len(wanted))
	for i, w := range wanted {
		k := slices.IndexFunc(arrays, func(a Array) bool { return a.Name == w.Name })
		if k < 0 {
			return nil, broken("array %q is missing", w.Name)
		}
		a := arrays[k]
		if a.Dtype != w.Dtype || w.Len >= 0 && a.Len != w.Len {
			return nil, broken("array %q holds %d × %s, want %s", w.Name, a.Len, a.Dtype, w)
		}
		out[i] = a
	}
	for _, a := range arrays {
		if !slices.ContainsFunc(wanted, func(w Want) bool { return w.Name == a.Name }) {
			return nil, broken("array %q is surplus", a.Name)
		}
	}
	return out, nil
}

// String describes the array for an error.
func (w Want) String() string {
	if w.Len < 0 {
		return "any number of " + string(w.Dtype)
	}
	return strconv.Itoa(w.Len) + " × " + string(w.Dtype)
}

// decodeObject decodes one JSON object without duplicate keys, nulls or unknown fields into v.
func decodeObject(b []byte, v any) error {
	if err := checkObject(b); err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return broken("read JSON: %v", err)
	}
	return nil
}
