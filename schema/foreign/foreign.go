// Package foreign reads Parquet and Arrow files that other programs have written. It knows nothing of the record.
//
// A *column* is a top-level column of a file. A *value* of it is nil for a null; a string for text, a number, a truth
// value or a time, by its logical type (value.go): a number by its digits, without an exponent; a date, a time or an
// identifier as people write it; JSON (json.RawMessage) where the column is nested; or an error, if the value cannot be
// read as what it means. An error does no harm unless the caller needs the value.
package foreign

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"

	"github.com/apache/arrow/go/v17/arrow"
)

// Magic is how a Parquet file begins.
const Magic = "PAR1"

// ErrTooLarge is the error for a file that holds more bytes than the caller accepts.
var ErrTooLarge = errors.New("the file's columns hold too many bytes")

// Table is an open file.
type Table struct {
	names []string
	most  int64 // bytes of all values
	// batches calls each with every batch of rows, which have these columns at least.
	batches func(columns []string, each func(arrow.Record) error) error
}

// Is reports whether a file that begins with these bytes is one that Open reads.
func Is(head []byte) bool {
	return bytes.HasPrefix(head, []byte(Magic)) || bytes.HasPrefix(head, []byte(arrowMagic)) ||
		bytes.HasPrefix(head, []byte(arrowStream))
}

// Open reads what the file says of its columns. A file whose pages hold more than most bytes once they are unpacked is
// ErrTooLarge.
func Open(data []byte, most int64) (*Table, error) {
	if bytes.HasPrefix(data, []byte(Magic)) {
		return openParquet(data, most)
	}
	return openArrow(data, most)
}

// Columns lists the names of the file's columns.
func (t *Table) Columns() []string { return t.names }

// Rows calls each for every row, in order, with the values of some columns. It stops at the first error. The slice is
// used again for the next row. Values of more bytes than the caller of Open accepts are ErrTooLarge: rows may repeat a
// text that the file holds once.
func (t *Table) Rows(columns []string, each func(values []any) error) error {
	values, left := make([]any, len(columns)), t.most
	return t.batches(columns, func(batch arrow.Record) error {
		for row := range int(batch.NumRows()) {
			for i, name := range columns {
				values[i] = nil
				if at := batch.Schema().FieldIndices(name); len(at) > 0 {
					values[i] = cell(name, batch.Column(at[0]), row)
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

// readAll calls each with every batch. io.EOF of each ends the reading.
func readAll(next func() (arrow.Record, error), each func(arrow.Record) error) error {
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

// Size is how many bytes a value holds.
func Size(value any) int64 {
	switch v := value.(type) {
	case string:
		return int64(len(v))
	case json.RawMessage:
		return int64(len(v))
	}
	return 0
}
