package foreign

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/memory"
	"github.com/apache/arrow/go/v17/parquet"
	"github.com/apache/arrow/go/v17/parquet/file"
	"github.com/apache/arrow/go/v17/parquet/pqarrow"
)

// rowsAtOnce bounds the rows that are decoded at once.
const rowsAtOnce = 256

func openParquet(data []byte, most int64) (_ *Table, err error) {
	if err := CheckFooter(data); err != nil {
		return nil, fmt.Errorf("read the file's footer: %w", err)
	}
	within := newBounded(most)
	defer within.refuse(&err)
	f, err := parquetFile(data, within)
	if err != nil {
		return nil, fmt.Errorf("read the file's footer: %w", err)
	}
	t, held := &Table{most: most}, int64(0)
	for group := range f.ParquetReader().NumRowGroups() {
		held += f.ParquetReader().MetaData().RowGroup(group).TotalByteSize()
	}
	if held > most {
		return nil, ErrTooLarge
	}
	for _, field := range f.Manifest.Fields {
		t.names = append(t.names, field.Field.Name)
	}
	t.batches = func(columns []string, each func(arrow.Record) error) error {
		return parquetBatches(data, columns, each)
	}
	return t, probe(f)
}

// parquetFile opens a file. What it says of Arrow's types is left out: they may be types that the decoder lacks.
func parquetFile(data []byte, within memory.Allocator) (*pqarrow.FileReader, error) {
	r, err := file.NewParquetReader(bytes.NewReader(data), file.WithReadProps(parquet.NewReaderProperties(within)))
	if err != nil {
		return nil, err
	}
	r.MetaData().FileMetaData.KeyValueMetadata = nil
	return pqarrow.NewFileReader(r, pqarrow.ArrowReadProperties{BatchSize: rowsAtOnce}, within)
}

// probe decodes each leaf of the columns by itself. The decoder panics about damaged pages, and so does the allocator
// about large ones; where it reads nested columns it does so in goroutines, where a panic ends the program.
func probe(f *pqarrow.FileReader) error {
	leaves := make([]pqarrow.SchemaField, len(f.Manifest.ColIndexToField))
	for i, leaf := range f.Manifest.ColIndexToField {
		leaves[i] = *leaf
	}
	f.Manifest.Fields = leaves
	for i := range leaves {
		column, err := f.GetColumn(context.Background(), i)
		if err != nil {
			return err
		}
		for rows := 1; rows > 0; {
			chunk, err := column.NextBatch(rowsAtOnce)
			if err != nil {
				return fmt.Errorf("read the column %s: %w", leaves[i].Field.Name, err)
			}
			rows = chunk.Len()
			chunk.Release()
		}
		column.Release()
	}
	return nil
}

// parquetBatches reads the batches of some columns of a file that probe has read.
func parquetBatches(data []byte, columns []string, each func(arrow.Record) error) error {
	f, err := parquetFile(data, memory.NewGoAllocator())
	if err != nil {
		return err
	}
	var leaves []int // nil means all
	for i := range f.Manifest.ColIndexToField {
		if slices.Contains(columns, f.ParquetReader().MetaData().Schema.ColumnRoot(i).Name()) {
			leaves = append(leaves, i)
		}
	}
	rows, err := f.GetRecordReader(context.Background(), leaves, nil)
	if err != nil {
		return err
	}
	defer rows.Release()
	left := f.ParquetReader().NumRows()
	err = readAll(rows.Read, func(batch arrow.Record) error {
		left -= batch.NumRows()
		return each(batch)
	})
	if err == nil && left != 0 {
		return errors.New("read rows: the file's pages end before its rows")
	}
	return err
}
