// Package foreign reads Parquet files that other programs have written. It knows nothing of the record.
//
// A *column* is a top-level column of single values. Its values are read as text, by their logical type (value.go): a
// number by its digits, without an exponent; a date, a time or an identifier as people write it; a truth value as true
// or false. A null has no text. What cannot be read as what it means is refused by name.
package foreign

import (
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
type Table struct {
	file    *parquet.File
	columns []parquet.LeafColumn // the requested columns that the file has
	texts   []func(parquet.Value) (string, error)
	names   []string
	most    int64 // bytes of all texts
}

// Open reads the file's footer. columns names the columns that Rows is to read; the file need not have all of them. A
// file whose pages hold more than most bytes once they are unpacked is ErrTooLarge.
func Open(r io.ReaderAt, size, most int64, columns []string) (*Table, error) {
	if err := CheckFooter(r, size); err != nil {
		return nil, fmt.Errorf("read the file's footer: %w", err)
	}
	f, err := parquet.OpenFile(r, size, parquet.SkipBloomFilters(true), parquet.SkipPageIndex(true))
	if err != nil {
		return nil, fmt.Errorf("read the file's footer: %w", err)
	}
	if err := checkPages(r, f, most); err != nil {
		return nil, err
	}
	t := &Table{file: f, most: most}
	for _, name := range columns {
		leaf, ok := f.Schema().Lookup(name)
		if !ok {
			if slices.ContainsFunc(f.Schema().Fields(), func(n parquet.Field) bool { return n.Name() == name }) {
				return nil, fmt.Errorf("column %s is nested, want single values", name)
			}
			continue
		}
		if leaf.MaxRepetitionLevel > 0 {
			return nil, fmt.Errorf("column %s holds lists, want single values", name)
		}
		text, err := reading(leaf.Node.Type())
		if err != nil {
			return nil, fmt.Errorf("column %s holds %w", name, err)
		}
		t.columns, t.texts, t.names = append(t.columns, leaf), append(t.texts, text), append(t.names, name)
	}
	return t, nil
}

// Columns lists the requested columns that the file has.
func (t *Table) Columns() []string { return t.names }

// Rows calls each for every row, in order, with the texts of Columns; ok is false for a null. It stops at the first
// error. Texts of more than most bytes together are ErrTooLarge: rows may repeat a text that the file holds once.
func (t *Table) Rows(each func(texts []string, ok []bool) error) error {
	texts, ok, left := make([]string, len(t.columns)), make([]bool, len(t.columns)), t.most
	for _, group := range t.file.RowGroups() {
		if group.NumRows() == 0 { // the decoder would look for its pages
			continue
		}
		if err := t.group(group, func(row parquet.Row) error {
			for i := range texts {
				texts[i], ok[i] = "", false
			}
			for _, v := range row {
				i := slices.IndexFunc(t.columns, func(c parquet.LeafColumn) bool { return c.ColumnIndex == v.Column() })
				if i < 0 || v.IsNull() {
					continue
				}
				var err error
				if texts[i], err = t.texts[i](v); err != nil {
					return fmt.Errorf("column %s %w", t.names[i], err)
				}
				if left -= int64(len(texts[i])); left < 0 {
					return ErrTooLarge
				}
				ok[i] = true
			}
			return each(texts, ok)
		}); err != nil {
			return err
		}
	}
	return nil
}

func (t *Table) group(group parquet.RowGroup, each func(parquet.Row) error) (err error) {
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
