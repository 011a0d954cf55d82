package schema

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// pythonColumn is a column as the Python package's tables.json declares it.
type pythonColumn struct {
	Name     string `json:"name"`
	Type     string `json:"type"` // Arrow's name
	Nullable bool   `json:"nullable"`
}

type pythonTable struct {
	Table   Table          `json:"table"`
	Columns []pythonColumn `json:"columns"`
}

// TestPythonTables: python/ropewalk/tables.json declares the tables that this package writes, in
// the order of Tables; -update writes it anew.
func TestPythonTables(t *testing.T) {
	rows := map[Table]any{
		Prompts: PromptRow{}, Turns: TurnRow{}, ToolCalls: ToolCallRow{}, Trajectories: TrajectoryRow{}, Gradings: GradingRow{}, Rewards: RewardRow{},
		Selection: SelectionRow{}, TokenOutputs: TokenOutputsRow{}, Replay: ReplayRow{}, Baselines: BaselineRow{}, Updates: UpdateRow{}, Evaluations: EvaluationRow{}, Timings: TimingRow{},
	}
	var tables []pythonTable
	for _, table := range Tables() {
		require.Contains(t, rows, table)
		tables = append(tables, pythonTable{table, pythonColumns(t, reflect.TypeOf(rows[table]))})
	}
	got, err := Canonical(tables)
	require.NoError(t, err)
	path := filepath.Join("..", "python", "ropewalk", "tables.json")
	if *update {
		require.NoError(t, os.WriteFile(path, got, 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), string(got), "go test ./schema -run TestPythonTables -update")
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
		nullable := strings.Contains(f.Tag.Get("parquet")+",", ",optional,")
		require.False(t, f.Type.Kind() == reflect.Pointer && !nullable, "%s: is a pointer and not optional", f.Name)
		out = append(out, pythonColumn{columnName(f), names[kind], nullable})
	}
	return out
}
