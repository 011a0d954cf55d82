package parquet

import (
	"bytes"
	"fmt"
	"sync"
	"unsafe"

	"github.com/parquet-go/parquet-go"
)

// rowsAtOnce is after how many rows the library looks whether a page is full.
const rowsAtOnce = 64

// mostKept is the size of the largest file whose buffer is used for another file.
const mostKept = 4 << 20

// rowWriter writes one file after another. It is for one caller at a time.
type rowWriter[F any] struct {
	out      bytes.Buffer
	library  *parquet.GenericWriter[F]
	rows     []F
	pointers []*float32
}

func newRowWriter[R, F any](options []parquet.WriterOption) *rowWriter[F] {
	w := &rowWriter[F]{pointers: []*float32{}} // of an empty list none is nil
	w.library = parquet.NewGenericWriter[F](&w.out, append(options, parquet.SchemaOf(new(R)))...)
	return w
}

// Writers write files of rows of type R; F is R, or R with pointers as the elements of its lists with holes. They are
// kept for further files, because making one takes longer than writing a small file.
type Writers[R, F any] struct{ kept sync.Pool }

// Write returns a file of the rows, in row groups of at most groupBytes before encoding and compression, where a group
// has several rows. All files have the same options.
func (k *Writers[R, F]) Write(rows []R, groupBytes int, options func() []parquet.WriterOption) ([]byte, error) {
	w, ok := k.kept.Get().(*rowWriter[F])
	if !ok {
		w = newRowWriter[R, F](options())
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
	k.kept.Put(w)
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
func writeGroup[R, F any](w *rowWriter[F], rows []R) error {
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
func withPointers[R, F any](w *rowWriter[F], rows []R) []F {
	w.rows, w.pointers = w.rows[:0], w.pointers[:0]
	plan := PlanOf[R]()
	for i := range rows {
		w.rows = append(w.rows, *(*F)(unsafe.Pointer(&rows[i])))
		for p := range plan {
			if f := &plan[p]; f.holes.Any {
				list := unsafe.Add(unsafe.Pointer(&w.rows[i]), f.offset)
				*(*[]*float32)(list) = w.elements(f, unsafe.Pointer(at[byte](&rows[i], f)))
			}
		}
	}
	return w.rows
}

// elements returns pointers to the elements of a row's list, or nil where there is a hole.
func (w *rowWriter[F]) elements(f *Field, list unsafe.Pointer) []*float32 {
	numbers := *(*[]float32)(list)
	if numbers == nil {
		return nil
	}
	start := len(w.pointers)
	for i := 0; i < len(numbers); {
		end, null := f.holes.Run(list, i, len(numbers))
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
