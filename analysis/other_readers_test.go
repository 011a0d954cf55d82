package analysis_test

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/python/pythontest"
	"github.com/ropewalk/ropewalk/schema"
)

// pandas, DuckDB, ClickHouse and Polars read every table's folder as it is, with the columns that the keys give. Before
// version 5 pandas could not read updates: step was a column and a part of the keys.
func TestOtherReadersReadATablesFolder(t *testing.T) {
	run := func(version int) string {
		return filepath.Join(folderOf(t, unpacked(t, version)), "runs", "run=golden")
	}
	python := pythontest.Need(t, "NOTEBOOK", "pandas", "duckdb", "polars", "chdb")
	cmd := exec.Command(python, filepath.Join("testdata", "readers.py"),
		run(schema.Version), run(4))
	out, err := cmd.Output()
	require.NoError(t, err, "%s", out)
	var got []map[string]map[schema.Table]any
	require.NoError(t, json.Unmarshal(out, &got))
	want := rowsRead(t, unpacked(t, schema.Version))
	for library, tables := range got[0] {
		require.GreaterOrEqual(t, len(tables), 14, library)
		for table, n := range tables {
			require.EqualValues(t, want[table], n, "%s %s", library, table)
		}
	}
	require.Contains(t, got[1]["pandas"][schema.Updates], "step has incompatible types")
}
