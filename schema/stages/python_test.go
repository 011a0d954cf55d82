package stages

import (
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/schema"
)

var update = flag.Bool("update", false, "rewrite what is derived from the declarations")

// pythonColumn is a column as the Python package's tables.json declares it.
type pythonColumn struct {
	Name     string `json:"name"`
	Type     string `json:"type"` // Arrow's name
	Nullable bool   `json:"nullable"`
}

type pythonTable struct {
	Table   schema.Table   `json:"table"`
	Columns []pythonColumn `json:"columns"`
}

// TestPythonTables: python/ropewalk/tables.json declares the tables that are written, in the order of schema.Tables;
// -update writes it.
func TestPythonTables(t *testing.T) {
	var tables []pythonTable
	for _, table := range schema.Tables() {
		tables = append(tables, pythonTable{table, pythonColumns(t, schema.RowType(table))})
	}
	got, err := schema.Canonical(tables)
	require.NoError(t, err)
	upToDate(t, filepath.Join("..", "..", "python", "ropewalk", "tables.json"), string(got))
}

// upToDate compares a file with what is derived, or writes it with -update.
func upToDate(t *testing.T, path, derived string) {
	t.Helper()
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(derived), 0o644))
	}
	there, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, derived, string(there), "%s is stale; run go test ./schema/stages -update", path)
}

// The Python package looks for each table where the declarations say that it is made: its module or file visible.* has
// a line for each table that heads lead to.
func TestPythonFindsTablesWhereTheyAreMade(t *testing.T) {
	folder := filepath.Join("..", "..", "python", "ropewalk")
	text, err := os.ReadFile(filepath.Join(folder, "visible.json"))
	if err != nil {
		text, err = os.ReadFile(filepath.Join(folder, "visible.py"))
	}
	require.NoError(t, err)
	found := map[schema.Table]string{}
	for _, m := range regexp.MustCompile(`(?m)^ +"(\w+)": \[?"(\w+)"`).FindAllStringSubmatch(string(text), -1) {
		found[schema.Table(m[1])] = m[2]
	}
	for _, table := range schema.Tables() {
		require.Equal(t, Maker(table), found[table], table)
	}
}

func pythonColumns(t *testing.T, row reflect.Type) []pythonColumn {
	t.Helper()
	names := map[string]string{
		"string": "string", "bool": "bool", "int32": "int32", "int64": "int64", "float64": "double",
		"[]int32": "list<int32>", "[]float32": "list<float>",
	}
	var out []pythonColumn
	for i := range row.NumField() {
		f := row.Field(i)
		kind := strings.TrimPrefix(f.Type.String(), "*")
		require.Contains(t, names, kind, f.Name)
		column, options, _ := strings.Cut(f.Tag.Get("parquet"), ",")
		nullable := strings.Contains(","+options+",", ",optional,")
		require.False(t, f.Type.Kind() == reflect.Pointer && !nullable, "%s: is a pointer and not optional", f.Name)
		name := names[kind]
		if f.Tag.Get("holes") != "" {
			name = "list<float?>"
		}
		out = append(out, pythonColumn{column, name, nullable})
	}
	return out
}
