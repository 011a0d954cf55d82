package schema

import (
	"bytes"
	"fmt"
	"unsafe"

	"github.com/parquet-go/parquet-go"
)

// rowsAtOnce is after how many rows the library looks whether a page is full.
const rowsAtOnce = 64

// mostKept is the size of the largest file whose buffer is used for another file.
const mostKept = 4 << 20

// element is what a list with holes has as its elements: numbers in a row, and pointers in a file's row, where nil is
// null. The library writes a number that is 0 as null if numbers of its list can be.
type element interface{ float32 | *float32 }

// rowWriter writes one file after another. It is for one caller at a time.
type rowWriter[F any] struct {
	out      bytes.Buffer
	library  *parquet.GenericWriter[F]
	rows     []F
	pointers []*float32
}

func newRowWriter[R Row, F any]() *rowWriter[F] {
	w := &rowWriter[F]{pointers: []*float32{}} // of an empty list none is nil
	options := append(writerOptions[R](TableOf[R]()), parquet.SchemaOf(new(R)))
	w.library = parquet.NewGenericWriter[F](&w.out, options...)
	return w
}

// write writes rows as a file. Writers are reused, because making one takes longer than writing a small file.
func (k *rowsOf[R, F]) write(rows []R, groupBytes int) ([]byte, error) {
	w, ok := k.writers.Get().(*rowWriter[F])
	if !ok {
		w = newRowWriter[R, F]()
	}
	for start := 0; start < len(rows); {
		end := groupEnd(rows, start, groupBytes)
		if err := writeGroup(w, rows[start:end]); err != nil {
			return nil, fmt.Errorf("rows %d–%d: %w", start, end-1, err)
		}
		start = end
	}
	if err := w.library.Close(); err != nil {
		return nil, err
	}
	data := bytes.Clone(w.out.Bytes())
	w.reset()
	k.writers.Put(w)
	return data, nil
}

// reset prepares the writer for another file. The library's Reset clears the memory of the file's row groups, which
// they share with the writer's own description of the columns: they are taken out first.
func (w *rowWriter[F]) reset() {
	clear(w.library.File().Metadata().RowGroups)
	if w.out.Reset(); w.out.Cap() > mostKept {
		w.out = bytes.Buffer{}
	}
	w.library.Reset(&w.out)
}

// writeGroup writes rows as a row group.
func writeGroup[R Row, F any](w *rowWriter[F], rows []R) error {
	defer func() {
		clear(w.rows[:cap(w.rows)])
		clear(w.pointers[:cap(w.pointers)])
	}()
	for len(rows) > 0 {
		n := min(rowsAtOnce, len(rows))
		batch, same := any(rows[:n]).([]F)
		if !same {
			batch = withPointers(w, rows[:n])
		}
		if _, err := w.library.Write(batch); err != nil {
			return err
		}
		rows = rows[n:]
	}
	return w.library.Flush()
}

// withPointers returns rows as the file has them, until the next call. R and F differ in the elements of their lists
// with holes alone, so that their fields have the same places.
func withPointers[R Row, F any](w *rowWriter[F], rows []R) []F {
	w.rows, w.pointers = w.rows[:0], w.pointers[:0]
	plan := planOf[R]()
	for i := range rows {
		w.rows = append(w.rows, *(*F)(unsafe.Pointer(&rows[i])))
		for p := range plan {
			if f := &plan[p]; f.holes.any {
				list := unsafe.Add(unsafe.Pointer(&w.rows[i]), f.offset)
				*(*[]*float32)(list) = w.elements(f, unsafe.Pointer(at[byte](&rows[i], f)))
			}
		}
	}
	return w.rows
}

// elements returns pointers to the elements of a row's list, or nil where there is a hole.
func (w *rowWriter[F]) elements(f *field, list unsafe.Pointer) []*float32 {
	numbers := *(*[]float32)(list)
	if numbers == nil {
		return nil
	}
	start := len(w.pointers)
	for i := 0; i < len(numbers); {
		end, null := f.holes.run(list, i, len(numbers))
		for ; i < end; i++ {
			if null {
				w.pointers = append(w.pointers, nil)
			} else {
				w.pointers = append(w.pointers, &numbers[i])
			}
		}
	}
	return w.pointers[start:len(w.pointers):len(w.pointers)]
}
