package parquet

import (
	"fmt"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding"
)

// present returns the values of a page that are not null, in memory that is not the page's.
func present[T cell](c *chunk, page parquet.Page) ([]T, error) {
	n := int(page.NumValues() - page.NumNulls())
	if dict := page.Dictionary(); dict != nil {
		return lookUp(page.Data(), dictionary[T](c, dict), n)
	}
	values, ours := plain[T](page.Data(), n)
	if len(values) < n {
		return nil, fmt.Errorf("a page holds %d values, but its header says %d", len(values), n)
	}
	if !ours {
		values = append(make([]T, 0, n), values[:n]...)
	}
	return values[:n], nil
}

// lookUp returns the values of a page that holds indices into a dictionary.
func lookUp[T cell](data encoding.Values, values []T, n int) ([]T, error) {
	indices := data.Int32()
	if len(indices) < n {
		return nil, fmt.Errorf("a page holds %d indices, but its header says %d", len(indices), n)
	}
	out := make([]T, n)
	for i, index := range indices[:n] {
		if uint(index) >= uint(len(values)) {
			return nil, fmt.Errorf("index %d is not in a dictionary of %d values", index, len(values))
		}
		out[i] = values[index]
	}
	return out, nil
}

// dictionary returns the values of a column's dictionary. Rows with the same text share its memory.
func dictionary[T cell](c *chunk, dict parquet.Dictionary) []T {
	if c.dict != dict {
		c.dict = dict
		c.values, _ = plain[T](dict.Page().Data(), dict.Len())
	}
	return c.values.([]T)
}

// plain returns at most n values that are stored one after the other, and whether they are in memory that is not the
// page's.
func plain[T cell](data encoding.Values, n int) (values []T, ours bool) {
	var found any
	switch any(*new(T)).(type) {
	case bool:
		found, ours = bools(data.Boolean(), n), true
	case string:
		found, ours = textsOf(data), true
	case int32:
		found = data.Int32()
	case int64:
		found = data.Int64()
	case float32:
		found = data.Float()
	case float64:
		found = data.Double()
	}
	return found.([]T), ours
}

// bools returns the first n of a page's bits, the lowest bit of a byte first.
func bools(bits []byte, n int) []bool {
	out := make([]bool, min(n, 8*len(bits)))
	for i := range out {
		out[i] = bits[i/8]>>(i%8)&1 == 1
	}
	return out
}

// textsOf returns the texts of a page, which share one piece of memory.
func textsOf(data encoding.Values) []string {
	bytes, offsets := data.ByteArray()
	all := string(bytes)
	out := make([]string, max(0, len(offsets)-1))
	for i := range out {
		out[i] = all[offsets[i]:offsets[i+1]]
	}
	return out
}
