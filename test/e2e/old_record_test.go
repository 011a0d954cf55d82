package e2e

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/python/pythontest"
)

// unpack writes a packed folder's files below a folder.
func unpack(t *testing.T, archive, folder string) {
	t.Helper()
	f, err := os.Open(archive)
	require.NoError(t, err)
	defer f.Close()
	plain, err := gzip.NewReader(f)
	require.NoError(t, err)
	files := 0
	for r := tar.NewReader(plain); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		path := filepath.Join(folder, filepath.FromSlash(header.Name))
		if header.Typeflag != tar.TypeReg {
			require.NoError(t, os.MkdirAll(path, 0o700))
			continue
		}
		text, err := io.ReadAll(r)
		require.NoError(t, err)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, text, 0o600))
		files++
	}
	require.Positive(t, files, "%s holds no file", archive)
}

// A run that an earlier version of the program had trained to its second of three steps, when it was killed, is
// read, checked, replayed and finished by this one. The archive holds the bucket's files as that version wrote them.
func TestOldRecordIsReadAndResumed(t *testing.T) {
	const run = "old-record"
	h, _ := needs(t, emptyNamespace)
	unpack(t, filepath.Join(root(), "test", "e2e", "testdata", "record-v3.tar.gz"), h.record().folder)

	require.Contains(t, h.run(t, "runs").ok(t).out, run)
	require.Contains(t, h.run(t, "show", run, "--step", "2").ok(t).out, "step 2")
	require.Contains(t, h.run(t, "sql", "select count(*) as n from trajectories").ok(t).out, "64")
	page := filepath.Join(t.TempDir(), "report.html")
	h.run(t, "report", run, "-o", page).ok(t)
	require.FileExists(t, page)
	readByPython(t, h, run)

	h.ensureUp(t)
	require.Contains(t, h.run(t, "verify", run).ok(t).out, "no fault")
	require.Contains(t, h.run(t, "replay", "--check", run).ok(t).out, "0 differ")
	require.Equal(t, 2, h.record().heads(run))

	var resumed report
	require.NoError(t, json.Unmarshal([]byte(h.run(t, "resume", run, "--json").ok(t).out), &resumed))
	require.Equal(t, 3, resumed.Steps)
	require.Equal(t, 3, h.record().heads(run))
	require.Contains(t, h.run(t, "verify", run).ok(t).out, "no fault")
	require.Contains(t, h.run(t, "replay", "--check", run).ok(t).out, "0 differ")
	h.run(t, "report", run, "-o", page).ok(t)
	readByPython(t, h, run)
}

// readByPython has the Python package read all tables of a run, which checks their digests.
func readByPython(t *testing.T, h *home, run string) {
	t.Helper()
	cmd := exec.Command(pythontest.Need(t, "NOTEBOOK", "pyarrow"), "-c", `
import sys
import ropewalk

run = ropewalk.open(sys.argv[1], run=sys.argv[2])
rewards, trajectories = run.table("rewards").arrow, run.table("trajectories").arrow
assert rewards.num_rows == trajectories.num_rows > 0, (rewards.num_rows, trajectories.num_rows)
for table in ("prompts", "turns", "tool_calls", "selection", "updates", "evaluations", "timings"):
    assert run.table(table).arrow.num_rows > 0, table
`, h.objects, run)
	cmd.Env = append(h.env, "PYTHONPATH="+filepath.Join(root(), "python"), "PYTHONDONTWRITEBYTECODE=1")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
}
