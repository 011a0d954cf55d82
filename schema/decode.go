package schema

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"github.com/ropewalk/ropewalk/schema/foreign"
	codec "github.com/ropewalk/ropewalk/schema/parquet"
)

// ErrCorrupt is wrapped by every error about a shard whose bytes are not a valid file of its kind.
var ErrCorrupt = errors.New("shard is corrupt")

// Decode reads one Parquet shard of R's table. It refuses a file of another table, of a later major version or without
// a required column, and the error names it. Corrupt bytes give ErrCorrupt, never a panic. Audit checks the invariants
// of the rows.
func Decode[R Row](data []byte) (rows []R, err error) { return decode[R](data, codec.PlanOf[R]()) }

// DecodeColumns is Decode for a reader that needs few columns: the other fields of the rows stay zero, and their values
// are neither decompressed nor checked. The first column must be required and no list.
func DecodeColumns[R Row](data []byte, columns ...string) ([]R, error) {
	all := codec.PlanOf[R]()
	plan := make([]codec.Field, len(columns))
	for i, name := range columns {
		at := slices.IndexFunc(all, func(f codec.Field) bool {
			return f.Name == name || strings.HasPrefix(f.Name, name+".") // a list's values have a leaf of their own
		})
		if at < 0 {
			return nil, fmt.Errorf("decode table %s: it has no column %s", TableOf[R](), name)
		}
		plan[i] = all[at]
	}
	return decode[R](data, plan)
}

func decode[R Row](data []byte, plan []codec.Field) (rows []R, err error) {
	file, err := openRows[R](data)
	if err != nil {
		return nil, err
	}
	rows = []R{}
	for _, group := range file.RowGroups() {
		if rows, err = decodeGroup(rows, plan, file, group); err != nil {
			return nil, err
		}
	}
	if int64(len(rows)) != file.NumRows() {
		return nil, corrupt(TableOf[R](), fmt.Errorf("holds %d rows, but its footer says %d", len(rows),
			file.NumRows()))
	}
	return rows, nil
}

// Groups is Decode for a reader that needs one row group's rows at a time, and so holds no more of them. The rows stay
// valid after their turn. An error ends the sequence.
func Groups[R Row](data []byte) iter.Seq2[[]R, error] {
	return func(yield func([]R, error) bool) {
		file, err := openRows[R](data)
		if err != nil {
			yield(nil, err)
			return
		}
		for _, group := range file.RowGroups() {
			rows, err := decodeGroup([]R{}, codec.PlanOf[R](), file, group)
			if !yield(rows, err) || err != nil {
				return
			}
		}
	}
}

func openRows[R Row](data []byte) (file *parquet.File, err error) {
	table := TableOf[R]()
	defer recovered(table, &err)
	file, version, err := openShard(table, data)
	if err != nil {
		return nil, err
	}
	return file, checkColumns(table, version, parquet.SchemaOf(new(R)), file.Schema())
}

// decodeGroup appends a row group's rows, with the fields of a plan.
func decodeGroup[R Row](rows []R, plan []codec.Field, file *parquet.File, group parquet.RowGroup) (all []R, err error) {
	table := TableOf[R]()
	defer recovered(table, &err)
	if all, err = codec.ReadGroup(rows, plan, file, group); err != nil {
		return nil, corrupt(table, fmt.Errorf("row group after row %d: %w", len(rows), err))
	}
	if int64(len(all)-len(rows)) != group.NumRows() {
		return nil, corrupt(table, fmt.Errorf("row group after row %d: holds %d rows, but the footer says %d",
			len(rows), len(all)-len(rows), group.NumRows()))
	}
	return all, nil
}

func closing(table Table, c io.Closer) error {
	if err := c.Close(); err != nil {
		return corrupt(table, err)
	}
	return nil
}

func corrupt(table Table, err error) error {
	return fmt.Errorf("decode table %s: %w: %w", table, ErrCorrupt, err)
}

// recovered turns a panic of a decoding library into an error. Only corrupt bytes cause one.
func recovered(table Table, err *error) {
	if p := recover(); p != nil {
		*err = corrupt(table, fmt.Errorf("%v", p))
	}
}

// openShard opens a Parquet file, checks its metadata and returns its version.
func openShard(table Table, data []byte) (*parquet.File, formatVersion, error) {
	if err := checkSeal(data); err != nil {
		return nil, formatVersion{}, corrupt(table, err)
	}
	if err := foreign.CheckFooter(data); err != nil {
		return nil, formatVersion{}, corrupt(table, err)
	}
	// Rows are read from the first to the last, for which the indexes of pages are of no use.
	file, err := parquet.OpenFile(bytes.NewReader(data), int64(len(data)), parquet.SkipPageIndex(true),
		parquet.SkipBloomFilters(true))
	if err != nil {
		return nil, formatVersion{}, corrupt(table, err)
	}
	name, _ := file.Lookup(metaTable)
	version, _ := file.Lookup(metaVersion)
	v, err := checkMeta(table, name, version)
	if err != nil {
		return nil, v, err
	}
	for _, group := range file.Metadata().RowGroups {
		for _, c := range group.Columns {
			if c.MetaData.Codec != format.Zstd {
				return nil, v, corrupt(table, fmt.Errorf("column %s is compressed by %s",
					strings.Join(c.MetaData.PathInSchema, "."), c.MetaData.Codec))
			}
		}
	}
	return file, v, nil
}

// checkMeta checks the table and version in a file's metadata. It refuses a later major version.
func checkMeta(table Table, name, version string) (formatVersion, error) {
	if name != string(table) {
		return formatVersion{}, fmt.Errorf("decode table %s: the file's metadata %s says %q", table, metaTable, name)
	}
	v, err := parseVersion(version)
	if err != nil {
		return v, corrupt(table, fmt.Errorf("metadata %s: %w", metaVersion, err))
	}
	if err := v.check(); err != nil {
		return v, fmt.Errorf("decode table %s: %w", table, err)
	}
	return v, nil
}

// checkColumns compares the leaf columns of a file with those of the table. Only a nullable column may be missing: an
// earlier version did not have it. Columns that this program does not know are ignored in a file of a later minor
// version, and refused in any other.
func checkColumns(table Table, version formatVersion, want, got *parquet.Schema) error {
	have := codec.Leaves(got)
	known := codec.KnownLeaves(want)
	for _, path := range want.Columns() {
		name := strings.Join(path, ".")
		w := known[name]
		g, ok := have[name]
		switch {
		case !ok && w.Nullable:
		case !ok:
			return fmt.Errorf("decode table %s: required column %s is missing", table, name)
		case g != w:
			return fmt.Errorf("decode table %s: column %s is %s, want %s", table, name, g, w)
		}
	}
	for _, path := range got.Columns() {
		name := strings.Join(path, ".")
		if known[name] == (codec.Leaf{}) && !version.newer() {
			return fmt.Errorf("decode table %s: column %s is not in schema version %d", table, name, Version)
		}
	}
	return nil
}
