package schema

import (
	"fmt"
	"strconv"

	"github.com/parquet-go/parquet-go"

	codec "github.com/ropewalk/ropewalk/schema/parquet"
)

// rowGroupBytes bounds a row group's raw size, so that a reader needs little memory at a time.
const rowGroupBytes = 64 << 20

// Sizes of split-block filters. A filter of bloomBitsPerValue for each value gives about 1% false positives. Filters
// are sized by rows, so a table with a row for each turn, two or more for most trajectories, needs half of it.
const (
	bloomBitsPerValue = 10
	bloomBitsPerTurn  = 5
)

// longTexts are the columns whose least and greatest value no reader filters by. Their statistics would copy whole
// texts into the footer.
var longTexts = []string{"problem", "observation", "response", "arguments", "code", "stdin", "stdout", "stderr",
	"value", "text", "messages", "item"}

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
	data, err := declaredFor[R]().write(codec.WellFormed(rows), groupBytes)
	if err == nil {
		err = seal(data)
	}
	if err != nil {
		return nil, fmt.Errorf("encode table %s: %w", table, err)
	}
	return data, nil
}

func writerOptions[R Row](table Table) []parquet.WriterOption {
	options := []parquet.WriterOption{
		parquet.CreatedBy("ropewalk", strconv.Itoa(versionOf(table)), "record"),
		// Pages of version 1 have their levels compressed too. The page index and the footer have the statistics.
		parquet.Compression(&parquet.Zstd), parquet.DataPageVersion(1), parquet.DataPageStatistics(false),
		parquet.KeyValueMetadata(metaTable, string(table)),
		parquet.KeyValueMetadata(metaVersion, strconv.Itoa(versionOf(table))),
		parquet.KeyValueMetadata(metaSeal, sealMark+sealDigits),
	}
	columns := parquet.SchemaOf(new(R))
	has := func(name string) bool {
		_, ok := columns.Lookup(name)
		return ok
	}
	for _, name := range longTexts {
		if has(name) {
			options = append(options, parquet.SkipPageBounds(name))
		}
	}
	// The library keeps the length of a filter for the next row group, which may have no value to filter.
	if leaf, ok := columns.Lookup("trajectory_id"); ok && !leaf.Node.Optional() {
		bits := uint(bloomBitsPerValue)
		if has("turn") {
			bits = bloomBitsPerTurn
		}
		options = append(options, parquet.BloomFilters(parquet.SplitBlockFilter(bits, "trajectory_id")))
	}
	if sorting := sortingColumns(has); len(sorting) > 0 {
		options = append(options, parquet.SortingWriterConfig(parquet.SortingColumns(sorting...)))
	}
	return options
}

// sortingColumns declares the order of the tables that begin with a group id. The orders of the other tables mix kinds
// and cannot be declared.
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

// Text returns s as the record stores it: each run of bytes that is not UTF-8 becomes U+FFFD.
func Text(s string) string { return codec.Text(s) }
