package metrics_test

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/analysis/metrics"
	"github.com/ropewalk/ropewalk/internal/testing/longform"
	"github.com/ropewalk/ropewalk/internal/testing/pythontest"
	"github.com/ropewalk/ropewalk/internal/testing/recordtest"
)

// tracked is what other programs read of the Python package's exports.
type tracked struct {
	WandB   []map[string]any        `json:"wandb"`
	Config  map[string]any          `json:"config"`
	MLflow  map[string][][3]float64 `json:"mlflow"`
	Params  map[string]string       `json:"params"`
	Again   [][2]any                `json:"again"`
	Dialled []string                `json:"dialled"`
	Control []string                `json:"control"`
}

func track(t *testing.T) (got tracked, want []metrics.Step) {
	t.Helper()
	exe := pythontest.Need(t, "TRACKERS", "wandb", "mlflow", "sqlalchemy", "alembic", "duckdb", "pyarrow")
	objects, record := run(t), t.TempDir()
	recordtest.Unpack(t, objects, record)
	package_, err := filepath.Abs(filepath.Join("..", "..", "python"))
	require.NoError(t, err)
	job, err := json.Marshal(map[string]string{"package": package_, "record": record, "run": "r", "out": t.TempDir()})
	require.NoError(t, err)
	cmd := exec.Command(exe, filepath.Join("testdata", "trackers.py"))
	var messages bytes.Buffer
	cmd.Stdin, cmd.Stderr = bytes.NewReader(job), &messages
	text, err := cmd.Output()
	require.NoError(t, err, messages.String())
	require.NoError(t, json.Unmarshal(text, &got), string(text))
	return got, compute(t, objects)
}

// The Python package writes the values that this package computes: `wandb sync` sends them from the offline run, and
// MLflow's client reads them from the database. Nothing is dialled.
func TestTrackers(t *testing.T) {
	longform.Need(t, "ROPEWALK_TEST_PYTHON_PACKAGE", "test-python-package")
	got, want := track(t)
	require.Len(t, got.WandB, len(want))
	for i, s := range want {
		at := float64(s.Time.UnixMicro()) / 1e6
		row := got.WandB[i]
		require.EqualValues(t, s.Step, row["_step"])
		require.InDelta(t, at, row["_timestamp"], 1e-5)
		names := 0
		for name := range row {
			if !strings.HasPrefix(name, "_") {
				names++
			}
		}
		require.Equal(t, len(s.Values), names)
		for _, v := range s.Values {
			require.InDelta(t, v.Value, row[v.Name], 1e-12, v.Name)
			require.NotEmpty(t, got.MLflow[v.Name], v.Name)
			point := got.MLflow[v.Name][0]
			got.MLflow[v.Name] = got.MLflow[v.Name][1:]
			require.EqualValues(t, s.Step, point[0], v.Name)
			require.InDelta(t, at, point[1], 1e-3)
			require.InDelta(t, v.Value, point[2], 1e-12, v.Name)
		}
	}
	for name, rest := range got.MLflow {
		require.Empty(t, rest, name)
	}
	require.Equal(t, map[string]any{"value": 5.0}, got.Config["seed"])
	require.Equal(t, map[string]string{"name": "fixture", "seed": "5", "steps": "3"}, got.Params)

	require.EqualValues(t, 2, got.Again[0][0])
	require.Contains(t, got.Again[0][1], "is this run already: delete it, or name another folder")
	require.EqualValues(t, 2, got.Again[1][0])
	require.Contains(t, got.Again[1][1], "has this run already: delete it there, or name another file")

	require.Empty(t, got.Dialled)
	control := strings.Join(got.Control, "\n")
	for _, name := range []string{"socket.getaddrinfo name.invalid", "http://proxied.invalid/", "wandb.invalid"} {
		require.Contains(t, control, name, "the watch notices this")
	}
}
