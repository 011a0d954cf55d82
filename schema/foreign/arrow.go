package foreign

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/ipc"
	"github.com/apache/arrow/go/v17/arrow/memory"
)

// How Arrow's files and streams begin. Hugging Face's datasets are saved as streams.
const (
	arrowMagic  = "ARROW1"
	arrowStream = "\xff\xff\xff\xff"
)

// arrowTable is a file or a stream of Arrow's IPC format.
type arrowTable struct {
	data   []byte
	most   int64
	schema *arrow.Schema
}

func openArrow(data []byte, most int64) (Table, error) {
	t := &arrowTable{data: data, most: most}
	return t, t.batches(func(s *arrow.Schema) { t.schema = s }, func(arrow.Record) error { return io.EOF })
}

// bounded is an allocator that gives no more than it has left: a buffer says how large it is once it is unpacked.
type bounded struct {
	memory.Allocator
	left int64
}

// Allocate implements memory.Allocator.
func (b *bounded) Allocate(size int) []byte {
	if b.left -= int64(size); b.left < 0 {
		panic(ErrTooLarge)
	}
	return b.Allocator.Allocate(size)
}

// Reallocate implements memory.Allocator.
func (b *bounded) Reallocate(size int, of []byte) []byte {
	if b.left -= int64(size - len(of)); b.left < 0 {
		panic(ErrTooLarge)
	}
	return b.Allocator.Reallocate(size, of)
}

// batches calls found with the schema and each with every batch of rows. io.EOF of each ends the reading.
func (t *arrowTable) batches(found func(*arrow.Schema), each func(arrow.Record) error) (err error) {
	within := &bounded{memory.NewGoAllocator(), 2 * t.most} // the bytes as they are stored, and unpacked
	defer func() {
		if within.left < 0 { // the reader has made an error of the panic
			err = ErrTooLarge
		}
	}()
	next, closing := (func() (arrow.Record, error))(nil), func() error { return nil }
	if bytes.HasPrefix(t.data, []byte(arrowMagic)) {
		r, err := ipc.NewFileReader(bytes.NewReader(t.data), ipc.WithAllocator(within))
		if err != nil {
			return err
		}
		found(r.Schema())
		next, closing = r.Read, r.Close
	} else {
		r, err := ipc.NewReader(bytes.NewReader(t.data), ipc.WithAllocator(within))
		if err != nil {
			return err
		}
		defer r.Release()
		found(r.Schema())
		next = r.Read
	}
	defer func() { err = errors.Join(err, closing()) }()
	for {
		batch, err := next()
		if err == nil {
			err = each(batch)
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
}

// Columns implements Table.
func (t *arrowTable) Columns() (names []string) {
	for _, f := range t.schema.Fields() {
		names = append(names, f.Name)
	}
	return names
}

// Rows implements Table.
func (t *arrowTable) Rows(columns []string, each func(values []any) error) error {
	values, left := make([]any, len(columns)), t.most
	return t.batches(func(*arrow.Schema) {}, func(batch arrow.Record) error {
		for row := range int(batch.NumRows()) {
			for i, name := range columns {
				values[i] = nil
				if at := t.schema.FieldIndices(name); len(at) > 0 {
					values[i] = arrowValue(name, batch.Column(at[0]), row)
				}
				if left -= Size(values[i]); left < 0 {
					return ErrTooLarge
				}
			}
			if err := each(values); err != nil {
				return err
			}
		}
		return nil
	})
}

func arrowValue(name string, column arrow.Array, row int) any {
	if column.IsNull(row) {
		return nil
	}
	switch c := column.(type) {
	case *array.String:
		return strings.Clone(c.Value(row))
	case *array.LargeString:
		return strings.Clone(c.Value(row))
	case *array.Dictionary:
		return arrowValue(name, c.Dictionary(), c.GetValueIndex(row))
	case *array.Binary, *array.LargeBinary, *array.FixedSizeBinary:
		return fmt.Errorf("%s holds values of type %s, want text, numbers or times", name, column.DataType())
	}
	out, err := json.Marshal(column.GetOneForMarshal(row))
	if err != nil {
		return fmt.Errorf("%s holds a value of type %s that has no text: %w", name, column.DataType(), err)
	}
	text := string(out)
	switch c := out[0]; {
	case c == '{' || c == '[':
		return json.RawMessage(out)
	case c == '"':
		err = json.Unmarshal(out, &text)
	case c == '-' || c >= '0' && c <= '9':
		text, err = Decimal(text)
	}
	if err != nil {
		return fmt.Errorf("%s %w", name, err)
	}
	return text
}
