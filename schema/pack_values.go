package schema

import (
	"reflect"
	"slices"
	"unsafe"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding"
)

// gatherer collects one column's values from rows, until a page is cut from them.
type gatherer interface {
	// expect makes room for the fields of n rows, or for those of a page if these are fewer.
	expect(field unsafe.Pointer, n int, size uintptr)
	// add takes the field of n rows. field is the field's address in the first row, and size the distance of rows.
	add(field unsafe.Pointer, n int, size uintptr)
	// bytes returns what parquet-go counts as the size of the values since the last cut. It decides where pages end.
	bytes() int
	// cut returns the values since the last cut, which are valid until the next call of add.
	cut(c *packedColumn) page
	// dictionary returns the dictionary of the pages since the last call, and its length, and begins another.
	dictionary() (encoding.Values, int)
	// release drops all references to rows.
	release()
}

// page holds the values of one page, as they are encoded.
type page struct {
	levels
	values    encoding.Values // indices if the column has a dictionary
	low, high parquet.Value
	bounded   bool  // low and high are set
	text      int64 // bytes of texts that are not in a dictionary
}

// levels are a page's repetition and definition levels. A column without one of the two has none.
type levels struct {
	repetition, definition []byte
	rows                   int
	entries                int // values, nulls and empty lists
	nulls                  int // null values, and lists that are null or empty
	void                   int // lists that are null
	none                   int // lists that are empty
}

// gathering makes what collects a field. full is the definition level of a value that is there.
type gathering func(dict bool, full byte, of holes) gatherer

// gatheringOf returns how a field of a type is collected.
func gatheringOf(t reflect.Type) gathering {
	switch t.Kind() {
	case reflect.Pointer:
		return byKind[gathering](t.Elem(), newOptional[bool], newOptional[int32], newOptional[int64],
			newOptional[float32], newOptional[float64], newOptional[string])
	case reflect.Slice:
		return byKind[gathering](t.Elem(), newLists[bool], newLists[int32], newLists[int64], newLists[float32],
			newLists[float64], newLists[string])
	}
	return byKind[gathering](t, newRequired[bool], newRequired[int32], newRequired[int64], newRequired[float32],
		newRequired[float64], newRequired[string])
}

func newRequired[T cell](dict bool, _ byte, _ holes) gatherer {
	return &required[T]{gathered: gatheredOf[T](dict)}
}

func newOptional[T cell](dict bool, _ byte, _ holes) gatherer {
	return &optional[T]{gathered: gatheredOf[T](dict)}
}

func newLists[T cell](dict bool, full byte, of holes) gatherer {
	g := &lists[T]{gathered: gatheredOf[T](dict), full: full, empty: full - 1, holes: of}
	if of.any {
		g.empty--
	}
	return g
}

// required collects a field that is always there.
type required[T cell] struct{ gathered[T] }

func (g *required[T]) add(field unsafe.Pointer, n int, size uintptr) {
	g.restart()
	for i := range n {
		g.values = append(g.values, *(*T)(unsafe.Add(field, uintptr(i)*size)))
	}
	g.rows += n
	g.entries += n
}

func (g *gathered[T]) expect(_ unsafe.Pointer, n int, _ uintptr) {
	g.restart()
	g.values = slices.Grow(g.values, min(n, pageRoom/int(unsafe.Sizeof(*new(T)))))
}

func (g *required[T]) bytes() int { return g.valueBytes() }

// optional collects a pointer.
type optional[T cell] struct{ gathered[T] }

func (g *optional[T]) add(field unsafe.Pointer, n int, size uintptr) {
	g.restart()
	for i := range n {
		level := byte(0)
		if value := *(**T)(unsafe.Add(field, uintptr(i)*size)); value != nil {
			level = 1
			g.values = append(g.values, *value)
		} else {
			g.nulls++
		}
		g.definition = append(g.definition, level)
	}
	g.rows += n
	g.entries += n
}

func (g *optional[T]) bytes() int { return 4*g.rows + len(g.definition) + g.valueBytes() }

// gathered holds the values that are there, and the levels.
type gathered[T cell] struct {
	levels
	values  []T
	text    int // bytes of the first texts
	counted int // how many texts these are
	isCut   bool
	dict    *numbering[T] // nil if the column has none
	packed  []byte        // bools as bits, or the texts one after the other
	starts  []uint32      // of the texts, and the end of the last
}

func gatheredOf[T cell](dict bool) gathered[T] {
	if dict {
		return gathered[T]{dict: &numbering[T]{}}
	}
	return gathered[T]{}
}

// restart forgets values that were cut.
func (g *gathered[T]) restart() {
	if g.isCut {
		g.levels = levels{repetition: g.repetition[:0], definition: g.definition[:0]}
		g.values, g.text, g.counted, g.isCut = g.values[:0], 0, 0, false
	}
}

// valueBytes returns the size of the values alone; those of a dictionary count as their indices.
func (g *gathered[T]) valueBytes() int {
	if g.dict != nil {
		return 4 * len(g.values)
	}
	switch values := any(g.values).(type) {
	case []bool:
		return (len(values) + 7) / 8
	case []string:
		for _, text := range values[g.counted:] {
			g.text += len(text)
		}
		g.counted = len(values)
		return g.text + 4*len(values)
	}
	return int(unsafe.Sizeof(*new(T))) * len(g.values)
}

func (g *gathered[T]) release() {
	if texts, ok := any(g.values).([]string); ok { // nothing else refers to rows
		clear(texts[:cap(texts)])
	}
	g.isCut = true
	if g.dict != nil {
		g.dict.clear()
	}
}

func (g *gathered[T]) cut(c *packedColumn) page {
	g.isCut = true
	p := page{levels: g.levels}
	if g.dict == nil {
		p.values = g.encoded(g.values)
		if c.bounds {
			p.low, p.high, p.bounded = g.boundsOf(c, p.values)
		}
		if p.values.Kind() == encoding.ByteArray {
			p.text = p.values.Size()
		}
		return p
	}
	if len(g.values) == 0 {
		p.values = encoding.Int32Values(nil)
		return p
	}
	low, high := extremes(g.values)
	if c.bounds {
		p.low, p.high, p.bounded = valueOf(low), valueOf(high), true
	}
	p.values = encoding.Int32Values(g.dict.indicesOf(g.values, low, high))
	return p
}

// boundsOf returns the least and the greatest value. The library tests each of a list's floats for NaN; a comparison
// with NaN is false anyway, unless the first value is NaN.
func (g *gathered[T]) boundsOf(c *packedColumn, values encoding.Values) (low, high parquet.Value, ok bool) {
	floats, ok := any(g.values).([]float32)
	if !ok || len(floats) == 0 || floats[0] != floats[0] {
		return c.kind.NewPage(c.index, len(g.values), values).Bounds()
	}
	least, most := floats[0], floats[0]
	for _, v := range floats {
		if v < least {
			least = v
		}
		if v > most {
			most = v
		}
	}
	return parquet.ValueOf(least), parquet.ValueOf(most), true
}

// valueOf returns a value for statistics. An empty text is a value there, which the library leaves out if it is nil.
func valueOf[T cell](v T) parquet.Value {
	if text, ok := any(v).(string); ok {
		return parquet.ByteArrayValue(append([]byte{}, text...))
	}
	return parquet.ValueOf(v)
}

func (g *gathered[T]) dictionary() (encoding.Values, int) {
	values := g.dict.values
	encoded := g.encoded(values)
	g.dict.clear()
	return encoded, len(values)
}

// encoded returns values in the form that the library's encodings read.
func (g *gathered[T]) encoded(values []T) encoding.Values {
	switch values := any(values).(type) {
	case []bool:
		return encoding.BooleanValues(g.bitsOf(values))
	case []int32:
		return encoding.Int32Values(values)
	case []int64:
		return encoding.Int64Values(values)
	case []float32:
		return encoding.FloatValues(values)
	case []float64:
		return encoding.DoubleValues(values)
	case []string:
		size := 0
		for _, text := range values {
			size += len(text)
		}
		g.packed = slices.Grow(g.packed[:0], size)
		g.starts = append(slices.Grow(g.starts[:0], len(values)+1), 0)
		for _, text := range values {
			g.packed = append(g.packed, text...)
			g.starts = append(g.starts, uint32(len(g.packed)))
		}
		return encoding.ByteArrayValues(g.packed, g.starts)
	}
	panic("schema: rows have no fields of this type")
}

// bitsOf packs values into bits, the lowest bit of a byte first.
func (g *gathered[T]) bitsOf(values []bool) []byte {
	g.packed = append(g.packed[:0], make([]byte, (len(values)+7)/8)...)
	for i, v := range values {
		if v {
			g.packed[i/8] |= 1 << (i % 8)
		}
	}
	return g.packed
}
