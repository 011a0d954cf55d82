package schema

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/parquet-go/parquet-go"
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
	data, err := declaredFor[R]().write(wellFormed(rows), groupBytes)
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

// groupEnd returns the end of the row group that begins at start, after at least one row and before the row that would
// exceed the bound.
func groupEnd[R Row](rows []R, start, bound int) (end int) {
	plan := planOf[R]()
	size := rawBytes(&rows[start], plan)
	for end = start + 1; end < len(rows); end++ {
		more := rawBytes(&rows[end], plan)
		if size+more > bound {
			break
		}
		size += more
	}
	return end
}

// rawBytes returns a row's size before encoding and compression.
func rawBytes[R Row](row *R, plan []field) int {
	size := 0
	for i := range plan {
		switch f := &plan[i]; {
		case f.element > 0: // the header of every slice has its length at the same place
			size += 4 + f.element*len(*at[[]byte](row, f))
		case f.text && f.optional:
			size += f.size
			if text := *at[*string](row, f); text != nil {
				size += len(*text)
			}
		case f.text:
			size += 4 + len(*at[string](row, f))
		default:
			size += f.size
		}
	}
	return size
}

// wellFormed returns the rows with every text made valid UTF-8, as Parquet's strings must be. If all rows are
// well-formed, which is the usual case, it returns them unchanged.
func wellFormed[R Row](rows []R) []R {
	copied := false
	for _, f := range planOf[R]() {
		if !f.text || f.optional {
			continue
		}
		before := ""
		for i := range rows {
			text := *at[string](&rows[i], &f)
			if text == before || utf8.ValidString(text) { // the rows of a group follow each other
				before = text
				continue
			}
			if !copied {
				rows, copied = append([]R(nil), rows...), true
			}
			*at[string](&rows[i], &f) = Text(text)
		}
	}
	return rows
}

// Text returns s as the record stores it: each run of bytes that is not UTF-8 becomes U+FFFD.
func Text(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
