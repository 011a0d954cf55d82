package schema

import (
	"bytes"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/parquet-go/parquet-go"
)

// rowGroupBytes bounds a row group's raw size, so that a reader needs little memory at a time.
const rowGroupBytes = 64 << 20

// bloomBitsPerValue gives about 1% false positives in a split-block filter.
const bloomBitsPerValue = 10

// longTexts are the columns whose least and greatest value nobody filters by; their statistics
// would copy whole texts into the footer.
var longTexts = []string{"problem", "observation", "response", "arguments", "code", "stdin", "stdout", "stderr", "value", "text", "messages", "item"}

// Encode writes rows as one Parquet shard of their table. The rows must be valid and in canonical
// order (Sort); an error names the row and the field. Equal rows give equal bytes.
func Encode[R Row](rows []R) ([]byte, error) {
	return encode(rows, rowGroupBytes)
}

func encode[R Row](rows []R, groupBytes int) ([]byte, error) {
	if err := Audit(rows); err != nil {
		return nil, err
	}
	table := TableOf[R]()
	rows = wellFormed(rows)
	var out bytes.Buffer
	w := parquet.NewGenericWriter[R](&out, writerOptions[R](table)...)
	for start := 0; start < len(rows); {
		end := groupEnd(rows, start, groupBytes)
		if _, err := w.Write(rows[start:end]); err != nil {
			return nil, fmt.Errorf("encode table %s rows %d–%d: %w", table, start, end-1, err)
		}
		if err := w.Flush(); err != nil {
			return nil, fmt.Errorf("encode table %s rows %d–%d: %w", table, start, end-1, err)
		}
		start = end
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("encode table %s: %w", table, err)
	}
	data := out.Bytes()
	if err := seal(data); err != nil {
		return nil, fmt.Errorf("encode table %s: %w", table, err)
	}
	return data, nil
}

func writerOptions[R Row](table Table) []parquet.WriterOption {
	options := []parquet.WriterOption{
		parquet.CreatedBy("ropewalk", strconv.Itoa(Version), "record"),
		parquet.Compression(&parquet.Zstd),
		parquet.KeyValueMetadata(metaTable, string(table)),
		parquet.KeyValueMetadata(metaVersion, strconv.Itoa(Version)),
		parquet.KeyValueMetadata(metaSeal, sealMark+sealDigits),
	}
	columns := parquet.SchemaOf(new(R))
	has := func(name string) bool {
		_, ok := columns.Lookup(name)
		return ok
	}
	for _, name := range longTexts {
		if has(name) {
			options = append(options, parquet.SkipPageBounds(name), parquet.SkipPageStatistics(name))
		}
	}
	if has("trajectory_id") {
		options = append(options, parquet.BloomFilters(parquet.SplitBlockFilter(bloomBitsPerValue, "trajectory_id")))
	}
	if sorting := sortingColumns(has); len(sorting) > 0 {
		options = append(options, parquet.SortingWriterConfig(parquet.SortingColumns(sorting...)))
	}
	return options
}

// sortingColumns declares the order of the tables that begin with a group id; the other tables'
// orders mix kinds that the declaration cannot express.
func sortingColumns(has func(string) bool) []parquet.SortingColumn {
	if !has("group_id") {
		return nil
	}
	var out []parquet.SortingColumn
	for _, name := range []string{"group_id", "trajectory_id", "turn", "call"} {
		if has(name) {
			out = append(out, parquet.Ascending(name))
		}
	}
	return out
}

// groupEnd returns where the row group that begins at start ends: after at least one row, before
// the row that would pass the bound.
func groupEnd[R Row](rows []R, start, bound int) int {
	size := rawBytes(reflect.ValueOf(&rows[start]).Elem())
	end := start + 1
	for end < len(rows) {
		size += rawBytes(reflect.ValueOf(&rows[end]).Elem())
		if size > bound {
			break
		}
		end++
	}
	return end
}

// rawBytes is a row's size before encoding and compression.
func rawBytes(row reflect.Value) int {
	size := 0
	for i := range row.NumField() {
		switch f := row.Field(i); f.Kind() {
		case reflect.String:
			size += 4 + f.Len()
		case reflect.Slice:
			size += 4 + f.Len()*int(f.Type().Elem().Size())
		case reflect.Pointer:
			if !f.IsNil() && f.Elem().Kind() == reflect.String {
				size += f.Elem().Len()
			}
			size += int(f.Type().Size())
		default:
			size += int(f.Type().Size())
		}
	}
	return size
}

// wellFormed returns the rows with every text made UTF-8, which Parquet's strings must be. Rows
// that are well-formed already, nearly always all of them, are returned as they are.
func wellFormed[R Row](rows []R) []R {
	copied := false
	for i := range rows {
		v := reflect.ValueOf(&rows[i]).Elem()
		for f := range v.NumField() {
			if v.Field(f).Kind() != reflect.String || utf8.ValidString(v.Field(f).String()) {
				continue
			}
			if !copied {
				rows, copied = append([]R(nil), rows...), true
				v = reflect.ValueOf(&rows[i]).Elem()
			}
			v.Field(f).SetString(Text(v.Field(f).String()))
		}
	}
	return rows
}

// Text returns s as the record stores it: each run of bytes that is not UTF-8 becomes U+FFFD.
func Text(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
