package schema

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
)

// ErrCorrupt is in every error about a shard whose bytes cannot be read as what they claim to be.
var ErrCorrupt = errors.New("shard is corrupt")

// readRows is how many rows are decoded at a time, so that a false row count costs nothing.
const readRows = 512

// Decode reads one Parquet shard of R's table. A file of another table, of a later schema version
// or without a required column is refused by name; corrupt bytes give ErrCorrupt, never a panic.
// The rows' own invariants are Audit's.
func Decode[R Row](data []byte) (rows []R, err error) {
	table := TableOf[R]()
	defer recovered(table, &err)
	file, err := openShard(table, data)
	if err != nil {
		return nil, err
	}
	if err := checkColumns(table, parquet.SchemaOf(new(R)), file.Schema()); err != nil {
		return nil, err
	}
	r := parquet.NewGenericReader[R](file)
	defer func() { err = errors.Join(err, closing(table, r)) }()
	rows = []R{}
	for {
		chunk := make([]R, readRows)
		n, err := r.Read(chunk)
		rows = append(rows, chunk[:n]...)
		if errors.Is(err, io.EOF) || (err == nil && n == 0) {
			break
		}
		if err != nil {
			return nil, corrupt(table, fmt.Errorf("read row %d: %w", len(rows), err))
		}
	}
	if int64(len(rows)) != file.NumRows() {
		return nil, corrupt(table, fmt.Errorf("holds %d rows where its footer says %d", len(rows), file.NumRows()))
	}
	return rows, nil
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

// recovered turns a decoding library's panic, which only corrupt bytes cause, into an error.
func recovered(table Table, err *error) {
	if p := recover(); p != nil {
		*err = corrupt(table, fmt.Errorf("%v", p))
	}
}

// openShard opens a Parquet file and checks its metadata against the table and our version.
func openShard(table Table, data []byte) (*parquet.File, error) {
	if err := checkSeal(data); err != nil {
		return nil, corrupt(table, err)
	}
	file, err := parquet.OpenFile(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, corrupt(table, err)
	}
	name, _ := file.Lookup(metaTable)
	version, _ := file.Lookup(metaVersion)
	if err := checkMeta(table, name, version); err != nil {
		return nil, err
	}
	for _, group := range file.Metadata().RowGroups {
		for _, c := range group.Columns {
			if c.MetaData.Codec != format.Zstd {
				return nil, corrupt(table, fmt.Errorf("column %s is compressed by %s", strings.Join(c.MetaData.PathInSchema, "."), c.MetaData.Codec))
			}
		}
	}
	return file, nil
}

// checkMeta checks a file's table and schema version, as its metadata spells them.
func checkMeta(table Table, name, version string) error {
	if name != string(table) {
		return fmt.Errorf("decode table %s: the file's metadata %s says %q", table, metaTable, name)
	}
	v, err := strconv.Atoi(version)
	if err != nil || v < 1 {
		return corrupt(table, fmt.Errorf("metadata %s is %q, want a number ≥ 1", metaVersion, version))
	}
	if v > Version {
		return fmt.Errorf("decode table %s: schema version %d is newer than this program's %d; upgrade ropewalk", table, v, Version)
	}
	return nil
}

// column is what must agree between a file's leaf column and ours.
type column struct {
	kind     string
	nullable bool
}

// checkColumns compares the leaf columns of a file with the table's. Only a nullable column may
// be missing: an earlier version did not know it.
func checkColumns(table Table, want, got *parquet.Schema) error {
	have := leaves(got)
	known := leaves(want)
	for _, path := range want.Columns() {
		name := strings.Join(path, ".")
		w := known[name]
		g, ok := have[name]
		switch {
		case !ok && w.nullable:
		case !ok:
			return fmt.Errorf("decode table %s: required column %s is missing", table, name)
		case g != w:
			return fmt.Errorf("decode table %s: column %s is %s, want %s", table, name, g, w)
		}
	}
	for _, path := range got.Columns() {
		if name := strings.Join(path, "."); known[name] == (column{}) {
			return fmt.Errorf("decode table %s: column %s is not in schema version %d", table, name, Version)
		}
	}
	return nil
}

func (c column) String() string {
	if c.nullable {
		return "nullable " + c.kind
	}
	return "required " + c.kind
}

func leaves(s *parquet.Schema) map[string]column {
	out := map[string]column{}
	for _, path := range s.Columns() {
		leaf, ok := s.Lookup(path...)
		if !ok {
			continue
		}
		// A list's leaf is repeated; its own null shows in one more definition level.
		lists := leaf.MaxRepetitionLevel
		out[strings.Join(path, ".")] = column{
			kind:     leaf.Node.Type().String() + strings.Repeat(" list", lists),
			nullable: leaf.MaxDefinitionLevel > lists,
		}
	}
	return out
}
