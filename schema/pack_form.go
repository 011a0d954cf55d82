package schema

import (
	"bytes"
	"slices"
	"sync"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding"
	"github.com/parquet-go/parquet-go/format"
)

// packedForm is what all files of a packed table have in common.
type packedForm struct {
	footer  format.FileMetaData // of a file without rows
	columns []packedColumn
	sorting []format.SortingColumn
	writers spares[*packedWriter]
}

var packedForms sync.Map // Table → *packedForm

// formOf returns the form of a table's files, as the library's writer has it.
func formOf[R Row]() (*packedForm, error) {
	table := TableOf[R]()
	if form, ok := packedForms.Load(table); ok {
		return form.(*packedForm), nil
	}
	form, err := newForm[R](levelOf)
	if err == nil {
		packedForms.Store(table, form)
	}
	return form, err
}

// newForm makes the form of a table's files, whose columns are compressed at the levels that level returns.
func newForm[R Row](level func(column string) int) (*packedForm, error) {
	options := writerOptions[R](TableOf[R]())
	config, err := parquet.NewWriterConfig(options...)
	if err != nil {
		return nil, err
	}
	w := parquet.NewGenericWriter[R](new(bytes.Buffer), options...)
	if err := w.Close(); err != nil {
		return nil, err
	}
	form := &packedForm{footer: *w.File().Metadata()}
	form.writers = newSpares(func() *packedWriter { return newPackedWriter(form) })
	columns := parquet.SchemaOf(new(R))
	for i, f := range planOf[R]() {
		path := columns.Columns()[i]
		leaf, _ := columns.Lookup(path...)
		c := newPackedColumn(f, path, leaf, config)
		c.level = level(f.name)
		form.columns = append(form.columns, c)
	}
	for _, s := range config.Sorting.SortingColumns {
		leaf, _ := columns.Lookup(s.Path()...)
		form.sorting = append(form.sorting, format.SortingColumn{ColumnIdx: int32(leaf.ColumnIndex),
			Descending: s.Descending(), NullsFirst: s.NullsFirst()})
	}
	return form, nil
}

// packedColumn is what all row groups of a table have in common in one column.
type packedColumn struct {
	field     field
	index     int
	path      []string
	kind      parquet.Type
	encoding  encoding.Encoding
	encodings []format.Encoding // of pages, levels and dictionary
	dict      bool
	level     int    // of zstd
	bounds    bool   // the least and greatest values are recorded
	deepest   [2]int // the greatest repetition and definition level
	filter    parquet.BloomFilterColumn
}

// newPackedColumn describes a field's column. The options of the writer decide about bounds and the filter.
func newPackedColumn(f field, path []string, leaf parquet.LeafColumn, options *parquet.WriterConfig) packedColumn {
	same := func(other []string) bool { return slices.Equal(other, path) }
	c := packedColumn{
		field: f, index: leaf.ColumnIndex, path: path, kind: leaf.Node.Type(), encoding: leaf.Node.Encoding(),
		bounds:  !slices.ContainsFunc(options.SkipPageBounds, same),
		deepest: [2]int{leaf.MaxRepetitionLevel, leaf.MaxDefinitionLevel},
	}
	for _, filter := range options.BloomFilters {
		if same(filter.Path()) {
			c.filter = filter
		}
	}
	if c.encoding == nil {
		c.encoding = &parquet.Plain
		if c.kind.Kind() == parquet.ByteArray {
			c.encoding = &parquet.DeltaLengthByteArray
		}
	}
	c.encodings = []format.Encoding{c.encoding.Encoding()}
	if c.encodings[0] == format.RLEDictionary {
		c.dict, c.encodings = true, append(c.encodings, format.Plain)
	}
	if leaf.MaxDefinitionLevel > 0 {
		c.encodings = append(c.encodings, format.RLE)
	}
	slices.Sort(c.encodings)
	return c
}
