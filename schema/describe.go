package schema

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/ipc"
	"github.com/parquet-go/parquet-go"

	"github.com/ropewalk/ropewalk/schema/foreign"
	codec "github.com/ropewalk/ropewalk/schema/parquet"
)

// Description says what is in a shard, without types of the libraries that read it.
type Description struct {
	Format        string             `json:"format"` // parquet | arrow
	Table         Table              `json:"table"`
	SchemaVersion int                `json:"schema_version"`
	Writer        string             `json:"writer"` // "" if the format does not say
	Rows          int64              `json:"rows"`
	Groups        []GroupDescription `json:"groups"` // Parquet's row groups, Arrow's record batches
	Columns       []Column           `json:"columns"`
	First         [][]Field          `json:"first_rows"`
}

// GroupDescription is one row group or record batch.
type GroupDescription struct {
	Rows  int64 `json:"rows"`
	Bytes int64 `json:"bytes"` // uncompressed
}

// Column is one leaf column, over all groups.
type Column struct {
	Name         string   `json:"name"`
	Type         string   `json:"type"`
	Nullable     bool     `json:"nullable"`
	Encodings    []string `json:"encodings"`
	Compression  string   `json:"compression"`
	Compressed   int64    `json:"compressed_bytes"` // 0 if the format does not say
	Uncompressed int64    `json:"uncompressed_bytes"`
	Values       int64    `json:"values"` // for lists, their elements
	Nulls        int64    `json:"nulls"`
	Min          *string  `json:"min"` // null if there is none or it is not recorded
	Max          *string  `json:"max"`
	Bloom        bool     `json:"bloom_filter"`
}

// Field is one value of a row.
type Field struct {
	Name  string `json:"name"`
	Value any    `json:"value"`
}

// Describe reads a shard's schema, statistics and first rows. Damaged bytes give ErrCorrupt. A file that is not of a
// table of the record is refused, and the error names the table that it claims.
func Describe(data []byte, first int) (out Description, err error) {
	table := Table("unknown")
	defer func() { recovered(table, &err) }()
	if err := checkSeal(data); err != nil {
		return out, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	if bytes.HasPrefix(data, []byte("ARROW1")) {
		table = Batch
		return describeBatch(data, first)
	}
	if err := foreign.CheckFooter(data); err != nil {
		return out, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	file, err := parquet.OpenFile(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return out, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	name, _ := file.Lookup(metaTable)
	table = Table(name)
	return describeFile(table, file, data, first)
}

func describeFile(table Table, file *parquet.File, data []byte, first int) (Description, error) {
	version, _ := file.Lookup(metaVersion)
	v, err := checkMeta(table, string(table), version)
	if err != nil {
		return Description{}, err
	}
	out := Description{Format: "parquet", Table: table, Writer: file.Metadata().CreatedBy, Rows: file.NumRows()}
	out.SchemaVersion = v.minor
	for _, g := range file.Metadata().RowGroups {
		out.Groups = append(out.Groups, GroupDescription{Rows: g.NumRows, Bytes: g.TotalByteSize})
	}
	for i, path := range file.Schema().Columns() {
		out.Columns = append(out.Columns, parquetColumn(file, i, path))
	}
	out.First, err = firstRows(table, data, first)
	return out, err
}

func parquetColumn(file *parquet.File, i int, path []string) Column {
	leaf, _ := file.Schema().Lookup(path...)
	kind := codec.Leaves(file.Schema())[strings.Join(path, ".")]
	out := Column{Name: strings.Join(path, "."), Type: kind.Kind, Nullable: kind.Nullable}
	var low, high parquet.Value
	bounded := true
	for g, group := range file.Metadata().RowGroups {
		m := group.Columns[i].MetaData
		for _, e := range m.Encoding {
			if !slices.Contains(out.Encodings, e.String()) {
				out.Encodings = append(out.Encodings, e.String())
			}
		}
		out.Compression = m.Codec.String()
		out.Compressed += m.TotalCompressedSize
		out.Uncompressed += m.TotalUncompressedSize
		out.Values += m.NumValues
		out.Nulls += m.Statistics.NullCount
		out.Bloom = out.Bloom || m.BloomFilterOffset > 0
		chunk, _ := file.RowGroups()[g].ColumnChunks()[i].(*parquet.FileColumnChunk)
		if chunk == nil {
			bounded = false
			continue
		}
		least, greatest, ok := chunk.Bounds()
		if bounded = bounded && ok; !bounded {
			continue
		}
		if g == 0 || leaf.Node.Type().Compare(least, low) < 0 {
			low = least.Clone()
		}
		if g == 0 || leaf.Node.Type().Compare(greatest, high) > 0 {
			high = greatest.Clone()
		}
	}
	if bounded && len(file.Metadata().RowGroups) > 0 {
		out.Min, out.Max = new(low.String()), new(high.String())
	}
	return out
}

// firstRows decodes the whole shard, so that rows that cannot be read are noticed, and returns the first n rows.
func firstRows(table Table, data []byte, n int) ([][]Field, error) {
	if k, ok := kindOf(table); ok {
		return k.first(data, n)
	}
	return nil, errors.Join(table.Valid(), fmt.Errorf("the file's metadata %s says %q", metaTable, table))
}

func (k *rowsOf[R, F]) first(data []byte, n int) ([][]Field, error) {
	rows, err := Decode[R](data)
	if err != nil {
		return nil, err
	}
	return fieldsOf(rows[:min(n, len(rows))]), nil
}

// fieldsOf returns the fields of each row, with the names of their columns.
func fieldsOf[T any](rows []T) [][]Field {
	out := [][]Field{}
	for i := range rows {
		v := reflect.ValueOf(&rows[i]).Elem()
		row := make([]Field, v.NumField())
		for f := range row {
			row[f] = Field{Name: fieldName(v.Type().Field(f)), Value: codec.Value(v, f)}
		}
		out = append(out, row)
	}
	return out
}

// fieldName returns the name of a field's column: from its tag, or for rows of the batch from the Arrow schema.
func fieldName(f reflect.StructField) string {
	if tag, ok := f.Tag.Lookup("parquet"); ok {
		name, _, _ := strings.Cut(tag, ",")
		return name
	}
	return batchSchema().Field(f.Index[0]).Name
}

func describeBatch(data []byte, first int) (out Description, err error) {
	r, err := ipc.NewFileReader(bytes.NewReader(data))
	if err != nil {
		return out, corrupt(Batch, err)
	}
	defer func() { err = errors.Join(err, closing(Batch, r)) }()
	table := Batch
	if name, _ := r.Schema().Metadata().GetValue(metaTable); name == string(ReplayBatch) {
		table = ReplayBatch
	}
	rows, err := decodeBatch(table, data)
	if err != nil {
		return out, err
	}
	version, _ := r.Schema().Metadata().GetValue(metaVersion)
	out = Description{Format: "arrow", Table: table, Rows: int64(len(rows)),
		First: fieldsOf(rows[:min(first, len(rows))])}
	out.SchemaVersion, _ = strconv.Atoi(version)
	for _, f := range r.Schema().Fields() {
		out.Columns = append(out.Columns, Column{Name: f.Name, Type: f.Type.String(), Nullable: f.Nullable})
	}
	for {
		record, err := r.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return out, corrupt(Batch, err)
		}
		group := GroupDescription{Rows: record.NumRows()}
		for i := range out.Columns {
			group.Bytes += addArrow(&out.Columns[i], record.Column(i))
		}
		out.Groups = append(out.Groups, group)
	}
	boundBatch(out.Columns, rows)
	return out, nil
}

// addArrow counts a column's values in one record batch and returns their bytes.
func addArrow(c *Column, values arrow.Array) int64 {
	size := int64(values.Data().SizeInBytes())
	c.Uncompressed += size
	c.Nulls += int64(values.NullN())
	if list, ok := values.(*array.List); ok {
		c.Values += int64(list.ListValues().Len())
	} else {
		c.Values += int64(values.Len())
	}
	return size
}
