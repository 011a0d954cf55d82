package analysis_test

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/testing/pythontest"
	"github.com/ropewalk/ropewalk/schema"
)

// pandas, DuckDB, ClickHouse and Polars read every table's folder as it is, with the columns that the keys give.
func TestOtherReadersReadATablesFolder(t *testing.T) {
	python := pythontest.Need(t, "NOTEBOOK", "pandas", "duckdb", "polars", "chdb")
	cmd := exec.Command(python, filepath.Join("testdata", "readers.py"),
		filepath.Join(folderOf(t, unpacked(t)), "runs", "run=golden"))
	out, err := cmd.Output()
	require.NoError(t, err, "%s", out)
	var got []map[string]map[schema.Table]any
	require.NoError(t, json.Unmarshal(out, &got))
	want := rowsRead(t, unpacked(t))
	for library, tables := range got[0] {
		require.GreaterOrEqual(t, len(tables), 14, library)
		for table, n := range tables {
			require.EqualValues(t, want[table], n, "%s %s", library, table)
		}
	}
}
