// Package foreign reads Parquet and Arrow files that other programs have written. It knows nothing of the record.
//
// A *column* is a top-level column of a file. A *value* of it is nil for a null; a string for text, a number, a truth
// value or a time, by its logical type (value.go): a number by its digits, without an exponent; a date, a time or an
// identifier as people write it; JSON (json.RawMessage) where the column is nested; or an error, if the value cannot be
// read as what it means. An error does no harm unless the caller needs the value.
package foreign

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/parquet-go/parquet-go"
)

// Magic is how a Parquet file begins.
const Magic = "PAR1"

// ErrTooLarge is the error for a file that holds more bytes than the caller accepts.
var ErrTooLarge = errors.New("the file's columns hold too many bytes")

// rowsAtOnce bounds the rows that are decoded at once.
const rowsAtOnce = 256

// Table is an open file.
type Table interface {
	// Columns lists the names of the file's columns.
	Columns() []string
	// Rows calls each for every row, in order, with the values of some columns. It stops at the first error. The slice
	// is used again for the next row. Values of more bytes than the caller of Open accepts are ErrTooLarge: rows may
	// repeat a text that the file holds once.
	Rows(columns []string, each func(values []any) error) error
}

// Is reports whether a file that begins with these bytes is one that Open reads.
func Is(head []byte) bool {
	return bytes.HasPrefix(head, []byte(Magic)) || bytes.HasPrefix(head, []byte(arrowMagic)) ||
		bytes.HasPrefix(head, []byte(arrowStream))
}

// Open reads what the file says of its columns. A Parquet file whose pages hold more than most bytes once they are
// unpacked is ErrTooLarge.
func Open(data []byte, most int64) (Table, error) {
	if !bytes.HasPrefix(data, []byte(Magic)) {
		return openArrow(data, most)
	}
	r := bytes.NewReader(data)
	if err := CheckFooter(r, r.Size()); err != nil {
		return nil, fmt.Errorf("read the file's footer: %w", err)
	}
	f, err := parquet.OpenFile(r, r.Size(), parquet.SkipBloomFilters(true), parquet.SkipPageIndex(true))
	if err != nil {
		return nil, fmt.Errorf("read the file's footer: %w", err)
	}
	if err := checkPages(r, f, most); err != nil {
		return nil, err
	}
	t := &parquetTable{file: f, most: most}
	leaf := 0
	for _, field := range f.Schema().Fields() {
		n := nodeOf(field, &leaf)
		t.columns, t.names = append(t.columns, n), append(t.names, n.name)
	}
	return t, nil
}

// parquetTable is an open Parquet file.
type parquetTable struct {
	file    *parquet.File
	columns []*node
	names   []string
	most    int64 // bytes of all values
}

// Columns implements Table.
func (t *parquetTable) Columns() []string { return t.names }

// Rows implements Table.
func (t *parquetTable) Rows(columns []string, each func(values []any) error) error {
	read := make([]*node, len(columns))
	for i, name := range columns {
		if at := slices.Index(t.names, name); at >= 0 {
			read[i] = t.columns[at]
		}
	}
	values, left := make([]any, len(columns)), t.most
	leaves := make([][]parquet.Value, len(t.file.Schema().Columns()))
	for _, group := range t.file.RowGroups() {
		if group.NumRows() == 0 { // the decoder would look for its pages
			continue
		}
		if err := t.group(group, func(row parquet.Row) error {
			row.Range(func(column int, of []parquet.Value) bool { leaves[column] = of; return true })
			for i, n := range read {
				values[i] = nil
				if n != nil {
					values[i] = n.read(leaves)
				}
				if left -= Size(values[i]); left < 0 {
					return ErrTooLarge
				}
			}
			return each(values)
		}); err != nil {
			return err
		}
	}
	return nil
}

func (t *parquetTable) group(group parquet.RowGroup, each func(parquet.Row) error) (err error) {
	rows := group.Rows()
	defer func() { err = errors.Join(err, rows.Close()) }()
	buffer := make([]parquet.Row, rowsAtOnce)
	for {
		n, err := rows.ReadRows(buffer)
		for _, row := range buffer[:n] {
			if err := each(row); err != nil {
				return err
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("read rows: %w", err)
		case n == 0:
			return errors.New("read rows: the file's pages end before its rows")
		}
	}
}
