// Package foreign reads Parquet files that other programs have written. It knows nothing of the record.
//
// A *column* is a top-level column of single values. Its values are read as text: a whole number by its digits, a
// truth value as true or false. A null has no text.
package foreign

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

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
	names   []string
}

// Open reads the file's footer. columns names the columns that Rows is to read; the file need not have all of them. A
// file whose columns hold more than most bytes once they are unpacked is ErrTooLarge.
func Open(r io.ReaderAt, size, most int64, columns []string) (*Table, error) {
	f, err := parquet.OpenFile(r, size, parquet.SkipBloomFilters(true), parquet.SkipPageIndex(true))
	if err != nil {
		return nil, fmt.Errorf("read the file's footer: %w", err)
	}
	unpacked := int64(0)
	for _, g := range f.Metadata().RowGroups {
		if g.TotalByteSize < 0 || g.TotalByteSize > most-unpacked {
			return nil, ErrTooLarge
		}
		unpacked += g.TotalByteSize
	}
	t := &Table{file: f}
	for _, name := range columns {
		leaf, ok := f.Schema().Lookup(name)
		if !ok {
			continue
		}
		if leaf.MaxRepetitionLevel > 0 {
			return nil, fmt.Errorf("column %s holds lists, want single values", name)
		}
		if !readable(leaf.Node.Type().Kind()) {
			return nil, fmt.Errorf("column %s holds values of type %s, want text or numbers", name, leaf.Node.Type())
		}
		t.columns, t.names = append(t.columns, leaf), append(t.names, name)
	}
	return t, nil
}

func readable(k parquet.Kind) bool {
	return slices.Contains([]parquet.Kind{parquet.ByteArray, parquet.Boolean, parquet.Int32, parquet.Int64,
		parquet.Float, parquet.Double}, k)
}

// Columns lists the requested columns that the file has.
func (t *Table) Columns() []string { return t.names }

// Rows calls each for every row, in order, with the texts of Columns; ok is false for a null. It stops at the first
// error.
func (t *Table) Rows(each func(texts []string, ok []bool) error) error {
	texts, ok := make([]string, len(t.columns)), make([]bool, len(t.columns))
	for _, group := range t.file.RowGroups() {
		if err := t.group(group, func(row parquet.Row) error {
			for i := range texts {
				texts[i], ok[i] = "", false
			}
			for _, v := range row {
				i := slices.IndexFunc(t.columns, func(c parquet.LeafColumn) bool { return c.ColumnIndex == v.Column() })
				if i >= 0 {
					texts[i], ok[i] = text(v)
				}
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

// text returns a value as text.
func text(v parquet.Value) (string, bool) {
	if v.IsNull() {
		return "", false
	}
	switch v.Kind() {
	case parquet.Boolean:
		return strconv.FormatBool(v.Boolean()), true
	case parquet.Int32:
		return strconv.FormatInt(int64(v.Int32()), 10), true
	case parquet.Int64:
		return strconv.FormatInt(v.Int64(), 10), true
	case parquet.Float:
		return strconv.FormatFloat(float64(v.Float()), 'g', -1, 32), true
	case parquet.Double:
		return strconv.FormatFloat(v.Double(), 'g', -1, 64), true
	}
	return string(v.ByteArray()), true
}
